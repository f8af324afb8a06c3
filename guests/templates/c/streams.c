#include "memory.h"

// Bytes of one read or splice: large enough that its own cost does not show.
static const uint64_t READ = 65536;

// A closed stream is an end like any other; anything else is a fault.
static ended_t ended(wasi_io_streams_stream_error_t *said, ended_t closed, error_t *error) {
  if (said->tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED) return closed;
  text_t message;
  wasi_io_error_method_error_to_debug_string(wasi_io_error_borrow_error(said->val.last_operation_failed), &message);
  failed(error, "stream_failed", message);
  return FAULT;
}

ended_t write_all(output_t stream, text_t content, error_t *error) {
  wasi_io_streams_borrow_output_stream_t to = wasi_io_streams_borrow_output_stream(stream);
  for (size_t at = 0; at < content.len; at += CHUNK) {
    size_t left = content.len - at;
    provider_list_u8_t chunk = {content.ptr + at, left < CHUNK ? left : CHUNK};
    wasi_io_streams_stream_error_t said;
    // Waits until everything is taken.
    if (!wasi_io_streams_method_output_stream_blocking_write_and_flush(to, &chunk, &said))
      return ended(&said, CUT, error);
  }
  return DONE;
}

ended_t read_all(input_t stream, size_t most, text_t *content, error_t *error) {
  wasi_io_streams_borrow_input_stream_t from = wasi_io_streams_borrow_input_stream(stream);
  *content = (text_t){need(0), 0};
  for (;;) {
    provider_list_u8_t piece;
    wasi_io_streams_stream_error_t said;
    if (!wasi_io_streams_method_input_stream_blocking_read(from, READ, &piece, &said))
      return ended(&said, DONE, error);
    content->ptr = realloc(content->ptr, content->len + piece.len + 1);
    if (!content->ptr) __builtin_trap();
    memcpy(content->ptr + content->len, piece.ptr, piece.len);
    content->len += piece.len;
    provider_list_u8_free(&piece);
    if (content->len > most) return CUT;
  }
}

ended_t splice_all(input_t from, output_t to, error_t *error) {
  // Moved inside the host; no byte enters this instance.
  wasi_io_streams_borrow_input_stream_t source = wasi_io_streams_borrow_input_stream(from);
  wasi_io_streams_borrow_output_stream_t target = wasi_io_streams_borrow_output_stream(to);
  wasi_io_streams_stream_error_t said;
  uint64_t moved;
  while (wasi_io_streams_method_output_stream_blocking_splice(target, source, READ, &moved, &said)) {}
  if (ended(&said, DONE, error) == FAULT) return FAULT;
  if (wasi_io_streams_method_output_stream_blocking_flush(target, &said)) return DONE;
  return ended(&said, DONE, error);
}
