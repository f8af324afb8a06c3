#include "memory.h"
#include <stdarg.h>

void *need(size_t size) {
  void *memory = malloc(size ? size : 1);
  // The host reports the limit that was hit; there is nothing to go on with.
  if (!memory) __builtin_trap();
  return memory;
}

bool equal(text_t a, text_t b) {
  return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

bool starts_with(text_t text, text_t prefix) {
  return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

int compare(text_t a, text_t b) {
  int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
  return order ? order : (a.len > b.len) - (a.len < b.len);
}

text_t slice(text_t text, size_t from, size_t to) {
  return (text_t){text.ptr + from, to - from};
}

text_t copy(text_t text) {
  text_t whole = {need(text.len), text.len};
  memcpy(whole.ptr, text.ptr, text.len);
  return whole;
}

static text_t digits(uint64_t value, unsigned base, uint8_t space[static 24]) {
  size_t at = 24;
  do {
    space[--at] = '0' + value % base;
    value /= base;
  } while (value);
  return (text_t){space + at, 24 - at};
}

// Measures when `into` is NULL.
static size_t lay_out(uint8_t *into, const char *form, va_list arguments) {
  size_t len = 0;
  for (; *form; form++) {
    uint8_t space[24];
    text_t piece = {(uint8_t *)form, 1};
    if (*form == '%') {
      switch (*++form) {
      case 's':
        piece = va_arg(arguments, text_t);
        break;
      case 'z':
        piece.ptr = va_arg(arguments, uint8_t *);
        piece.len = strlen((char *)piece.ptr);
        break;
      case 'u':
        piece = digits(va_arg(arguments, uint64_t), 10, space);
        break;
      case 'o':
        piece = digits(va_arg(arguments, uint64_t), 8, space);
        break;
      }
    }
    if (into) memcpy(into + len, piece.ptr, piece.len);
    len += piece.len;
  }
  return len;
}

text_t format(const char *form, ...) {
  va_list arguments;
  va_start(arguments, form);
  size_t len = lay_out(NULL, form, arguments);
  va_end(arguments);
  text_t text = {need(len), len};
  va_start(arguments, form);
  lay_out(text.ptr, form, arguments);
  va_end(arguments);
  return text;
}

bool number(text_t text, uint64_t *value) {
  if (text.len == 0 || text.len > 9) return false;
  *value = 0;
  for (size_t at = 0; at < text.len; at++) {
    if (text.ptr[at] < '0' || text.ptr[at] > '9') return false;
    *value = *value * 10 + (text.ptr[at] - '0');
  }
  return true;
}
