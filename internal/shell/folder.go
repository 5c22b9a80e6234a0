package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// typedEnv in the environment of a program is the command line that reports show in place of its own: an argument a
// line. Somebody typed that line, a parent rpcbench made the program for it, and the folder of -out.
const typedEnv = "RPCBENCH_TYPED"

// ForMade is the variable by which a program that this one has made knows that, and what was typed.
func ForMade() string { return typedEnv + "=" + strings.Join(AsTyped(), "\n") }

// byParent is the command line of the parent that has made this program, or nil.
func byParent() []string {
	if line := os.Getenv(typedEnv); line != "" {
		return strings.Split(line, "\n")
	}
	return nil
}

// Folder makes the one that a command was given, unless a parent has made it, or one named by day and minute: another
// than each run that began in that minute.
func Folder(command, named string) (out string, err error) {
	if out = named; named != "" && byParent() != nil {
		return out, nil
	}
	now := time.Now().Format("rpcbench-2006-01-02-1504")
	for n := 1; n == 1 || named == "" && errors.Is(err, fs.ErrExist); n++ {
		if named == "" {
			out = strings.TrimSuffix(fmt.Sprintf("%s-%d", now, n), "-1")
		}
		err = os.Mkdir(out, 0o755)
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w: name another folder with -out", command, err)
	}
	return out, nil
}

// IsNew refuses a folder that is there, unless a parent has made it, or that has none to be made in.
func IsNew(where, folder string) error {
	if byParent() != nil {
		return nil
	}
	_, missing := os.Lstat(folder)
	switch _, none := os.Stat(filepath.Dir(folder)); {
	case missing == nil:
		return Wrong("%s %s: it is there already: name another", where, folder)
	case none != nil:
		return Wrong("%s %s: make the folder %s first", where, folder, filepath.Dir(folder))
	}
	return nil
}

// Once refuses a name that is given twice.
func Once(where string, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return Wrong("%s: %s is named twice: name it once", where, name)
		}
	}
	return nil
}

// AsTyped is the command line as results may show it: of absolute paths, the last part alone.
func AsTyped() []string {
	args := append([]string{"rpcbench"}, os.Args[1:]...)
	if line := byParent(); line != nil {
		args = line
	}
	for i, arg := range args {
		name, value, whole := strings.Cut(arg, "=")
		if whole && filepath.IsAbs(value) {
			args[i] = name + "=" + filepath.Base(value)
		} else if filepath.IsAbs(arg) {
			args[i] = filepath.Base(arg)
		}
	}
	return args
}
