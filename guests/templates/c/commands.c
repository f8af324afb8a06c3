// The commands of the sandbox. A real provider would hand them to its back end instead.
#include "memory.h"

// What a shell answers to a command it does not know, and to one that is used wrongly.
enum { NOT_FOUND = 127, MISUSED = 2 };

typedef exports_leasehold_provider_execute_exit_t exit_t;

// Ends the command with a code once everything was written. Nobody reads any more: a command would get a signal.
static bool finish(ended_t ended, int32_t code, exit_t *exit) {
  if (ended == CUT) {
    exit->tag = EXPORTS_LEASEHOLD_PROVIDER_EXECUTE_EXIT_SIGNALED;
    exit->val.signaled = copy(LITERAL("SIGPIPE"));
  } else {
    exit->tag = EXPORTS_LEASEHOLD_PROVIDER_EXECUTE_EXIT_EXITED;
    exit->val.exited = code;
  }
  return ended != FAULT;
}

static bool complain(command_t *command, text_t text, int32_t code, exit_t *exit, error_t *error) {
  text_t line = format("%s: %s\n", command->request->argv.ptr[0], text);
  return finish(write_all(command->err, line, error), code, exit);
}

static bool echo(command_t *command, exit_t *exit, error_t *error) {
  provider_list_string_t argv = command->request->argv;
  size_t len = 1;
  for (size_t at = 1; at < argv.len; at++) len += argv.ptr[at].len + 1;
  text_t line = {need(len), 0};
  for (size_t at = 1; at < argv.len; at++) {
    if (at > 1) line.ptr[line.len++] = ' ';
    memcpy(line.ptr + line.len, argv.ptr[at].ptr, argv.ptr[at].len);
    line.len += argv.ptr[at].len;
  }
  line.ptr[line.len++] = '\n';
  return finish(write_all(command->out, line, error), 0, exit);
}

static bool cat(command_t *command, exit_t *exit, error_t *error) {
  provider_list_string_t argv = command->request->argv;
  if (argv.len == 1) return finish(splice_all(command->input, command->out, error), 0, exit);
  int32_t code = 0;
  for (size_t at = 1; at < argv.len; at++) {
    text_t path = resolve(command->sandbox, argv.ptr[at]);
    node_t *node = find(command->sandbox, path);
    if (node && node->is_file) {
      ended_t ended = write_all(command->out, node->content, error);
      if (ended != DONE) return finish(ended, 0, exit);
      continue;
    }
    code = 1;
    const char *why = node ? "is a directory" : "no such file";
    if (!complain(command, format("%s: %z", path, why), code, exit, error)) return false;
    if (exit->tag != EXPORTS_LEASEHOLD_PROVIDER_EXECUTE_EXIT_EXITED) return true;
  }
  return finish(DONE, code, exit);
}

static bool write_file(command_t *command, exit_t *exit, error_t *error) {
  provider_list_string_t argv = command->request->argv;
  if (argv.len != 2) return complain(command, LITERAL("give one path"), MISUSED, exit, error);
  text_t path = resolve(command->sandbox, argv.ptr[1]), content;
  ended_t ended = read_all(command->input, SANDBOX_MAX, &content, error);
  if (ended == FAULT) return false;
  fault_t fault = {"sandbox_full", path, "no space left"};
  fault_t full = fault;
  bool put = ended == DONE && put_file(command->sandbox, path, content, NULL, &fault);
  if (put && encode(command->sandbox).len > SANDBOX_MAX) {
    fault = full;
    put = false;
  }
  if (!put) return complain(command, format("%s: %z", fault.path, fault.reason), 1, exit, error);
  return save(command->request->lease.id, command->sandbox, error) && finish(DONE, 0, exit);
}

// The only argument as a number.
static bool only_number(command_t *command, uint64_t *value) {
  return command->request->argv.len == 2 && number(command->request->argv.ptr[1], value);
}

static bool sleep_for(command_t *command, exit_t *exit, error_t *error) {
  uint64_t wanted;
  if (!only_number(command, &wanted))
    return complain(command, LITERAL("give milliseconds"), MISUSED, exit, error);
  provider_option_u64_t allowed = command->request->timeout_ms;
  bool timed_out = allowed.is_some && wanted > allowed.val;
  uint64_t nanoseconds = (timed_out ? allowed.val : wanted) * 1000000;
  wasi_io_poll_own_pollable_t clock = wasi_clocks_monotonic_clock_subscribe_duration(nanoseconds);
  wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(clock));
  finish(DONE, 0, exit);
  if (timed_out) exit->tag = EXPORTS_LEASEHOLD_PROVIDER_EXECUTE_EXIT_TIMED_OUT;
  return true;
}

static bool exit_with(command_t *command, exit_t *exit, error_t *error) {
  uint64_t code;
  if (!only_number(command, &code) || code > 255)
    return complain(command, LITERAL("give a code from 0 to 255"), MISUSED, exit, error);
  return finish(DONE, code, exit);
}

static bool env(command_t *command, exit_t *exit, error_t *error) {
  provider_list_tuple2_string_string_t variables = command->request->env;
  for (size_t at = 0; at < variables.len; at++) {
    text_t line = format("%s=%s\n", variables.ptr[at].f0, variables.ptr[at].f1);
    ended_t ended = write_all(command->out, line, error);
    if (ended != DONE) return finish(ended, 0, exit);
  }
  return finish(DONE, 0, exit);
}

static bool seq(command_t *command, exit_t *exit, error_t *error) {
  uint64_t last;
  if (!only_number(command, &last)) return complain(command, LITERAL("give a number"), MISUSED, exit, error);
  // Room for one line beyond a full chunk.
  uint8_t space[CHUNK + 24];
  text_t pending = {space, 0};
  for (uint64_t current = 1; current <= last; current++) {
    size_t digits = 1;
    for (uint64_t rest = current / 10; rest; rest /= 10) digits++;
    for (uint64_t at = digits, rest = current; at > 0; rest /= 10) pending.ptr[pending.len + --at] = '0' + rest % 10;
    pending.len += digits;
    pending.ptr[pending.len++] = '\n';
    if (pending.len < CHUNK) continue;
    ended_t ended = write_all(command->out, slice(pending, 0, CHUNK), error);
    if (ended != DONE) return finish(ended, 0, exit);
    pending.len -= CHUNK;
    memmove(pending.ptr, pending.ptr + CHUNK, pending.len);
  }
  return finish(write_all(command->out, pending, error), 0, exit);
}

static const struct {
  const char *name;
  bool (*run)(command_t *, exit_t *, error_t *);
} COMMANDS[] = {
    {"echo", echo}, {"cat", cat}, {"write", write_file}, {"sleep", sleep_for},
    {"exit", exit_with}, {"env", env}, {"seq", seq},
};

bool run(command_t *command, exit_t *exit, error_t *error) {
  text_t name = command->request->argv.ptr[0];
  for (size_t at = 0; at < sizeof COMMANDS / sizeof *COMMANDS; at++) {
    const char *known = COMMANDS[at].name;
    if (equal(name, (text_t){(uint8_t *)known, strlen(known)})) return COMMANDS[at].run(command, exit, error);
  }
  return complain(command, LITERAL("not found"), NOT_FOUND, exit, error);
}
