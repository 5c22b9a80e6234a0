package testkit

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal is a new terminal of so many columns: a program writes to one side, and the other has what is shown. It
// skips the test where there is none.
func Terminal(t testing.TB, columns int) (side, shown *os.File) {
	t.Helper()
	shown, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	t.Cleanup(func() { _ = shown.Close() })
	fd := int(shown.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	side, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = side.Close() })
	Resize(t, side, columns)
	return side, shown
}

// Resize gives a terminal another width.
func Resize(t testing.TB, side *os.File, columns int) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(side.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
}
