/*
 * Each request: a letter, an address, a number of bytes (32 bits each), and the bytes where some go
 * out. Each reply: a status of one byte, and the bytes where some come in.
 */
#include "board.h"

#include <stdio.h>
#include <string.h>

static int request(
    char kind, uint32_t address, const void *sent, uint32_t sent_bytes, void *received,
    uint32_t bytes)
{
    int status;

    fwrite(&kind, 1, 1, stdout);
    fwrite(&address, sizeof address, 1, stdout);
    fwrite((sent != NULL) ? &sent_bytes : &bytes, sizeof bytes, 1, stdout);
    if (sent != NULL) {
        fwrite(sent, 1, sent_bytes, stdout);
    }
    fflush(stdout);
    status = getchar();
    if ((status == 0) && (received != NULL) && (fread(received, 1, bytes, stdin) != bytes)) {
        status = 1;
    }
    return status;
}

int board_identify(void *context, model_device *device)
{
    static char variant[256];

    (void)context;
    device->variant = variant;
    device->isa_version = MODEL_ISA_VERSION;
    return request('i', 0U, NULL, 0U, variant, sizeof variant);
}

int board_write(void *context, uint32_t address, const uint8_t *data, uint32_t bytes)
{
    (void)context;
    return request('w', address, data, bytes, NULL, 0U);
}

int board_read(void *context, uint32_t address, uint8_t *data, uint32_t bytes)
{
    (void)context;
    return request('r', address, NULL, 0U, data, bytes);
}

int board_execute(void *context, const uint32_t *words, uint32_t count)
{
    (void)context;
    return request('e', 0U, words, 4U * count, NULL, 0U);
}

void board_camera(int8_t *image, uint32_t count)
{
    (void)request('c', 0U, NULL, 0U, image, count);
}

void board_result(const int8_t *values, uint32_t count)
{
    (void)request('y', 0U, values, count, NULL, 0U);
}

void board_message(const char *text)
{
    (void)request('m', 0U, text, (uint32_t)strlen(text), NULL, 0U);
}
