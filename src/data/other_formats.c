/* Files of other programs that are not read here: what they are, and the line that converts them. */
#include "data/data.h"

#include "base/files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEAD = 16 };

/** By their first bytes, and where those say too little by their names too. */
static const struct {
    const char *begin;
    size_t length;
    const char *ending; // NULL: any
    const char *what;
    const char *convert; // %s: the file; NULL: it is unpacked
} formats[] = {
    {"PAR1", 4, NULL, "a Parquet file", "import pandas as pd; pd.read_parquet('%s').to_csv('table.csv', index=False)"},
    {"ARROW1", 6, NULL, "an Arrow file", "import pandas as pd; pd.read_feather('%s').to_csv('table.csv', index=False)"},
    {"PK\3\4", 4, ".xlsx", "an Excel file",
     "import pandas as pd; pd.read_excel('%s').to_csv('table.csv', index=False)"},
    {"PK\3\4", 4, ".ods", "a spreadsheet", "import pandas as pd; pd.read_excel('%s').to_csv('table.csv', index=False)"},
    {"\xd0\xcf\x11\xe0", 4, ".xls", "an Excel file",
     "import pandas as pd; pd.read_excel('%s').to_csv('table.csv', index=False)"},
    {"\x89HDF\r\n", 6, NULL, "an HDF5 file",
     "import h5py, numpy as np; f = h5py.File('%s'); np.savez('data.npz', **{k: f[k][()] for k in f})"},
    {"MATLAB 5.0", 10, NULL, "a MATLAB file",
     "import scipy.io as io, numpy as np; m = io.loadmat('%s'); np.savez('data.npz', **{k: m[k] for k in m if k[0] != "
     "'_'})"},
    {"SQLite format 3", 15, NULL, "a database of SQLite", NULL},
    {"PK\3\4", 4, ".pt", "a file of PyTorch",
     "import torch, numpy as np; x, y = torch.load('%s'); np.savez('data.npz', x=x, y=y)"},
    {"PK\3\4", 4, ".pth", "a file of PyTorch",
     "import torch, numpy as np; x, y = torch.load('%s'); np.savez('data.npz', x=x, y=y)"},
    {"\x80\2", 2, NULL, "a pickle", NULL}, // of protocol 2 to 5
    {"\x80\3", 2, NULL, "a pickle", NULL},
    {"\x80\4", 2, NULL, "a pickle", NULL},
    {"\x80\5", 2, NULL, "a pickle", NULL},
    {"PK\3\4", 4, ".zip", "a ZIP archive", ""},
    {"\x1f\x8b", 2, ".tar.gz", "an archive", ""},
    {"\x1f\x8b", 2, ".tgz", "an archive", ""},
    {"Rar!", 4, NULL, "an archive", ""},
    {"7z\xbc\xaf", 4, NULL, "an archive", ""},
};

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcasecmp(text + length - tail, ending);
}

/** What converts it, as a line of the shell. */
static mixt_status refuse(const char *path, const char *what, const char *convert)
{
    char python[512];
    bool plain = !strpbrk(path, "'\"\\$`%\n") && strlen(path) < 200;
    if (convert && !*convert)
        return mixt__fail(MIXT_ERROR_DATA, "%s: is %s: unpack it and name the folder or file in it", path, what);
    if (!strcmp(what, "a pickle"))
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: is a pickle, which may run any program when it is opened: if you trust it, convert it: a "
            "DataFrame with python3 -c \"import pandas as pd; pd.read_pickle('%s').to_csv('table.csv', "
            "index=False)\", arrays with numpy.savez; of CIFAR take the binary version",
            path, plain ? path : "FILE");
    if (!convert)
        return mixt__fail(MIXT_ERROR_DATA, "%s: is %s: write the table as CSV (sqlite3 -header -csv FILE 'select …')",
                          path, what);
    const char *mark = strstr(convert, "%s");
    snprintf(python, sizeof python, "%.*s%s%s", (int)(mark - convert), convert, plain ? path : "FILE", mark + 2);
    return mixt__fail(MIXT_ERROR_DATA, "%s: is %s, which is not read here: convert it with python3 -c \"%s\"", path,
                      what, python);
}

mixt_status mixt__other_format_check(const char *path)
{
    char head[HEAD] = "";
    FILE *file = mixt__path_is_file(path) ? mixt__file_open_stream(path) : NULL;
    size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (got >= formats[i].length && !memcmp(head, formats[i].begin, formats[i].length) &&
            (!formats[i].ending || ends_with(path, formats[i].ending)))
            return refuse(path, formats[i].what, formats[i].convert);
    return MIXT_OK;
}
