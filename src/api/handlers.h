#pragma once
/* The handlers of the API; routes.c lists them. */

struct call;

void do_execute(struct call *c);
void do_execute_stream(struct call *c);
void do_execute_ws(struct call *c);
void do_batch(struct call *c);
void do_execution(struct call *c);
void do_execution_events(struct call *c);
void do_sandbox_new(struct call *c);
void do_sandboxes(struct call *c);
void do_sandbox(struct call *c);
void do_sandbox_change(struct call *c);
void do_sandbox_delete(struct call *c);
void do_sandbox_pause(struct call *c);
void do_sandbox_resume(struct call *c);
void do_cell(struct call *c);
void do_interrupt(struct call *c);
void do_restart(struct call *c);
void do_stdin(struct call *c);
void do_kernel_new(struct call *c);
void do_kernels(struct call *c);
void do_kernel(struct call *c);
void do_kernel_delete(struct call *c);
void do_complete(struct call *c);
void do_inspect(struct call *c);
void do_variables(struct call *c);
void do_upload(struct call *c);
void do_files(struct call *c);
void do_download(struct call *c);
void do_delete(struct call *c);
void do_sandbox_file(struct call *c);
void do_sandbox_file_put(struct call *c);
void do_sandbox_file_delete(struct call *c);
void do_sandbox_file_post(struct call *c);
void do_sandbox_archive(struct call *c);
void do_sandbox_archive_put(struct call *c);
void do_health(struct call *c);
void do_info(struct call *c);
void do_profiles(struct call *c);
void do_metrics(struct call *c);
void do_openapi(struct call *c);
void do_asset(struct call *c);
void do_root(struct call *c);

extern const struct schema batch_schema, sandbox_file_schema;
extern const struct schema sandbox_schema, sandbox_change_schema, cell_schema;
extern const struct schema which_kernel_schema, stdin_schema, kernel_schema;
extern const struct schema complete_schema, inspect_schema;
