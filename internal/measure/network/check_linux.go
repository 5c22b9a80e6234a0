package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Check makes a network of the link in a child and ends it. It returns the settings that the namespaces have, or an
// error that says what is missing and what allows it.
func Check(ctx context.Context, link tap.Link, settings tcp.Settings) (found tcp.Settings, err error) {
	if err := device(); err != nil {
		return nil, err
	}
	p, err := child.Command{Does: child.Networks, Alone: true, Asked: trial{link, settings},
		Limit: 10 * time.Second}.Start(ctx)
	if err != nil {
		return nil, lacking(err)
	}
	defer p.End()
	return found, p.Ask("", &found)
}

// trial is which network a child tries to make.
type trial struct {
	Link     tap.Link     `json:"link"`
	Settings tcp.Settings `json:"settings"`
}

// Trying is the job of a child that makes a network, tells its settings and ends it.
func Trying() child.Job { return child.NewJob(try) }

func try(ctx context.Context, _ child.Stacks, asked trial, lines <-chan []byte, reply func(any) error) error {
	n, err := Make(ctx, Spec{Link: asked.Link, Settings: asked.Settings})
	if err != nil {
		return err
	}
	if <-lines != nil {
		err = reply(n.Settings())
	}
	return errors.Join(err, n.Close())
}

const tun = "/dev/net/tun"

// device says why there is no device to make.
func device() error {
	f, err := os.OpenFile(tun, os.O_RDWR, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("a link with a loss needs %s, which this user may not open: sudo chmod 666 %[1]s allows it", tun)
	}
	return fmt.Errorf("a link with a loss needs %s, which is not there (%w): sudo modprobe tun makes it; "+
		"of a container, docker run --device %[1]s", tun, errors.Unwrap(err))
}

// lacking says why a process may have no namespace of its own.
func lacking(err error) error {
	switch {
	case !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EINVAL):
		return err
	case os.Geteuid() == 0:
		return fmt.Errorf("a link with a loss needs network namespaces, which this container may not make: "+
			"docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN --device %s allows it", tun)
	}
	return errors.New("a link with a loss needs network namespaces, which this user may not make: run it as root, or " +
		"sudo sysctl -w user.max_user_namespaces=10000 allows it")
}

// noRights says why a process has no rights in its namespace.
func noRights(err error) error {
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		return err
	}
	if _, none := os.Stat("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); none == nil && os.Geteuid() == 0 {
		return fmt.Errorf("%w: AppArmor gives users no rights in their namespaces: run it as root, or "+
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 allows it", err)
	}
	return fmt.Errorf("%w: run it as root; of a container, docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN allows it",
		err)
}
