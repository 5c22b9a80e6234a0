// Release writes a module proxy into a folder: the main module and stacks/more as they lie in the work tree, at the
// version of the main module that stacks/more requires. It prints that version. The zips hold what those of a tag hold.
//
//	go -C internal/tools run ./release FOLDER
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	mainModule = "github.com/rpcbench/rpcbench"
	more       = "stacks/more"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: release FOLDER")
	}
	version, err := write(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(version)
}

func write(proxy string) (version string, err error) {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", err
	}
	root := strings.TrimSpace(string(top))
	path := filepath.Join(root, more, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	mod, err := modfile.Parse(path, data, nil)
	if err != nil {
		return "", err
	}
	for _, r := range mod.Require {
		if r.Mod.Path == mainModule {
			version = r.Mod.Version
		}
	}
	for _, dir := range []string{".", more} {
		if err := publish(proxy, root, dir, version); err != nil {
			return "", fmt.Errorf("%s: %w", dir, err)
		}
	}
	return version, nil
}

// publish writes what a proxy serves of the module in dir.
func publish(proxy, root, dir, version string) error {
	files, err := tracked(filepath.Join(root, dir))
	if err != nil {
		return err
	}
	m := module.Version{Path: filepath.ToSlash(filepath.Join(mainModule, dir)), Version: version}
	checked, err := zip.CheckFiles(files)
	if err := errors.Join(err, refused(checked)); err != nil {
		return err
	}
	served := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(served, 0o777); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, data := range map[string]string{
		"list": version + "\n", version + ".mod": string(mod), version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
	} {
		if err := os.WriteFile(filepath.Join(served, name), []byte(data), 0o666); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(served, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(out, m, files), out.Close())
}

// refused names a file of a module's zip that only development needs.
func refused(zip zip.CheckedFiles) error {
	for _, name := range zip.Valid {
		for _, without := range []string{"study/", "internal/tools/", more + "/", "stacktest/testdata/outsider/"} {
			if strings.HasPrefix(name, without) {
				return fmt.Errorf("%s is in the module: %s needs a go.mod", name, without)
			}
		}
	}
	return nil
}

// file is one that git tracks, or would.
type file struct{ dir, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.dir, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.dir, f.name)) }

func tracked(dir string) (files []zip.File, err error) {
	said, err := exec.Command("git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(said), "\x00"), "\x00") {
		f := file{dir, name}
		if _, err := f.Lstat(); err == nil { // not deleted
			files = append(files, f)
		}
	}
	return files, nil
}
