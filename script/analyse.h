/* Put in front of every source that clang-tidy looks at (script/lint): it cannot see into err.c,
 * and would follow each failure as if it might have been a success. */
#pragma once
#include "base/err.h"

#define err_set(...)  ((void)err_set(__VA_ARGS__), -1)
#define err_wrap(...) ((void)err_wrap(__VA_ARGS__), -1)
#define err_user(...) ((void)err_user(__VA_ARGS__), -1)
#define err_sys(...)  ((void)err_sys(__VA_ARGS__), -1)
