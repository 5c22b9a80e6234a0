package command

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// elsewhere takes the value of -server. It leaves out workloads that need another server, or refuses those that were
// chosen.
func (c *comparison) elsewhere(value string, chosen bool) error {
	c.servers = map[string]string{}
	for item := range strings.SplitSeq(value, ",") {
		name, addr, _ := strings.Cut(item, "=")
		_, _, err := net.SplitHostPort(addr)
		_, unknown := c.find(name)
		switch {
		case err != nil:
			return wrong("run: -server: %q is no stack=host:port: give what rpcbench serve prints", item)
		case unknown != nil:
			return unknown
		case c.servers[name] != "":
			return wrong("run: -server: %s is named twice: name it once", name)
		}
		c.servers[name] = addr
	}
	for _, name := range append([]string{c.base}, c.contestants...) {
		switch {
		case build(name) != "":
			return wrong("run: -server: %s is a build, which is linked here and has no server in another program: "+
				"leave one of the two out", name)
		case c.servers[name] == "":
			return wrong("run: -server: the server of %s, which is compared, is missing: add %[1]s=host:port", name)
		}
	}
	c.warnings = append(c.warnings, "the servers are in other programs, so CPU is the client's alone, and a server "+
		"on this "+
		"machine counts as one of those", "no test of this program has checked the servers (proved: no), other processes of "+
		"them may differ by more than an interval says, and bytes, allocations and layers are left out")
	var left []string
	c.workloads = slices.DeleteFunc(slices.Clone(c.workloads), func(w workload.Workload) bool {
		if w.TLS || w.Unix || w.Rate != 0 || w.Apart && c.sweep.workloads != nil {
			left = append(left, w.Name)
			return true
		}
		return false
	})
	why := strings.Join(left, ", ") + ": -server is for workloads without TLS, a Unix socket, a rate or -apart"
	switch {
	case len(left) > 0 && (chosen || len(c.workloads) == 0):
		return wrong("run: %s", why)
	case len(left) > 0:
		c.warnings = append(c.warnings, "skipped: "+why)
	}
	return nil
}

// reach calls each server once: a run would take minutes to say that one is missing.
func (c *comparison) reach(ctx context.Context) error {
	for _, s := range c.stacks {
		if addr := c.servers[s.Name]; addr != "" {
			f, err := rpcbench.Start(ctx, s, rpcbench.Config{Remote: addr})
			if err != nil {
				return err
			}
			_ = f.Close() // of the client alone
		}
	}
	return nil
}
