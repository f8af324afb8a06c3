// What the files of this provider share.
//
// An instance lives for one call and is dropped with all its memory, so nothing here is freed. What is handed
// back to the host must come from `malloc` all the same: the bindings free it once the host has copied it.
#pragma once

#include "provider.h"
#include <stdlib.h>
#include <string.h>

typedef provider_string_t text_t;
typedef leasehold_provider_types_error_t error_t;
typedef leasehold_provider_sync_types_operation_result_t moved_t;
typedef wasi_io_streams_own_input_stream_t input_t;
typedef wasi_io_streams_own_output_stream_t output_t;

// The only directory that commands and transfers may change.
#define WORKSPACE LITERAL("/workspace")
// Bytes of a whole sandbox, names and contents. The store takes no larger value unless the host raises its
// limit `state-value-bytes`. Hit: the write fails and the sandbox stays as it was.
#define SANDBOX_MAX 65536
// Bytes of one write. `blocking-write-and-flush` takes 4096 at most; a prime below it shows in tests that
// nobody relies on round numbers.
#define CHUNK 4093
// The host never sends more permission bits than these.
#define PERMISSIONS 07777

#define LITERAL(text) ((text_t){(uint8_t *)(text), sizeof(text) - 1})

// text.c: bytes with a length. Text from the host may hold anything, zero bytes included.
void *need(size_t size);
bool equal(text_t a, text_t b);
bool starts_with(text_t text, text_t prefix);
int compare(text_t a, text_t b);
text_t slice(text_t text, size_t from, size_t to);
text_t copy(text_t text);
// `%s` takes a text_t, `%z` a C string, `%u` a uint64_t, `%o` the same in octal.
text_t format(const char *form, ...);
// At most nine digits; more would not be a time or a count that anybody means.
bool number(text_t text, uint64_t *value);

// sandbox.c: a small tree of files, kept as one value in the host's store. One value for one sandbox means that
// every change is one compare-and-set: all of it is kept, or nothing.
typedef struct {
  text_t path;
  uint32_t mode;
  bool is_file;
  text_t content;
} node_t;

typedef struct {
  text_t cwd;
  // In the order of their paths, so a parent always comes before its children. Parents are always there.
  node_t *nodes;
  size_t len;
  // Version in the store; 0 means that it must not be there yet.
  uint64_t version;
} sandbox_t;

// A path that cannot be used, and why. Commands print it, transfers return it.
typedef struct {
  const char *code;
  text_t path;
  const char *reason;
} fault_t;

text_t normal(text_t path);
text_t resolve(const sandbox_t *sandbox, text_t path);
node_t *find(const sandbox_t *sandbox, text_t path);
bool below(text_t path, text_t directory);
bool make_directory(sandbox_t *sandbox, text_t path, uint32_t *mode, fault_t *fault);
// No mode keeps the one the file has.
bool put_file(sandbox_t *sandbox, text_t path, text_t content, const uint32_t *mode, fault_t *fault);
bool remove_tree(sandbox_t *sandbox, text_t path, fault_t *fault);
text_t encode(const sandbox_t *sandbox);
bool load(text_t lease_id, sandbox_t *sandbox, error_t *error);
bool save(text_t lease_id, sandbox_t *sandbox, error_t *error);

// errors.c: the contract's errors. Each returns false, so that a caller can return it at once.
bool failed(error_t *error, const char *code, text_t message);
bool unavailable(error_t *error, const char *message);
bool of_fault(error_t *error, fault_t fault);
bool of_state(error_t *error, const leasehold_host_state_state_error_t *said);
bool of_transfer(error_t *error, const leasehold_host_transfer_transfer_error_t *said);

// streams.c: whole contents over streams. How one ended: by itself, because nobody reads or because there was
// more than expected, or by a fault, which is in `error` then.
typedef enum { DONE, CUT, FAULT } ended_t;

ended_t write_all(output_t stream, text_t content, error_t *error);
ended_t read_all(input_t stream, size_t most, text_t *content, error_t *error);
ended_t splice_all(input_t from, output_t to, error_t *error);

// commands.c: the commands of the sandbox.
typedef struct {
  exports_leasehold_provider_execute_execute_request_t *request;
  sandbox_t *sandbox;
  input_t input;
  output_t out, err;
} command_t;

bool run(command_t *command, exports_leasehold_provider_execute_exit_t *exit, error_t *error);

// transfer.c: files in and out of the sandbox.
bool take(sandbox_t *sandbox, exports_leasehold_provider_sync_in_inbound_mapping_t *mapping, moved_t *moved,
          error_t *error);
bool give(const sandbox_t *sandbox, exports_leasehold_provider_sync_out_outbound_mapping_t *mapping,
          moved_t *moved, error_t *error);
