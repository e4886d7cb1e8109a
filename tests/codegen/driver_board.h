/* A board for tests: the accelerator is at the other end of standard input and output. */
#ifndef BOARD_H
#define BOARD_H

#include "model.h"

int board_identify(void *context, model_device *device);
int board_write(void *context, uint32_t address, const uint8_t *data, uint32_t bytes);
int board_read(void *context, uint32_t address, uint8_t *data, uint32_t bytes);
int board_execute(void *context, const uint32_t *words, uint32_t count);

void board_camera(int8_t *image, uint32_t count);
void board_result(const int8_t *values, uint32_t count);
void board_message(const char *text);

#endif
