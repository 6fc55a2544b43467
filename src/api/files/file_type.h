#pragma once
/* The MIME type of a file by the end of its name, as in Python's mimetypes; bytes when that says
 * nothing. */

const char *file_type(const char *path);
