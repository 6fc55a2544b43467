#pragma once
/* `cloche status --server URL`. */

int remote_status(int argc, char **argv);
