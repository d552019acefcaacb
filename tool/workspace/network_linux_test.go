package workspace_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

// reach is a program that tries one way out after the other, and prints those that went.
const reach = `
import ctypes, os, socket, sys
port, path = int(sys.argv[1]), sys.argv[2]
def tcp(): socket.create_connection(("127.0.0.1", port)).close()
def fast():
    s = socket.socket(); s.sendto(b"x", 0x20000000, ("127.0.0.1", port)); s.close()
def mptcp():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(("127.0.0.1", port)); s.close()
def udp(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port))
def six(): socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
def unix(): s = socket.socket(socket.AF_UNIX); s.connect(path); s.close()
def netlink(): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
def ring():
    if ctypes.CDLL(None, use_errno=True).syscall(425, 4, ctypes.create_string_buffer(120)) < 0: raise OSError(ctypes.get_errno(), "")
libc = ctypes.CDLL(None, use_errno=True)
def ok(r):
    if r < 0: raise OSError(ctypes.get_errno(), "")
def loose(kind): a, b = socket.socketpair(socket.AF_UNIX, kind); a.sendto(b"x", path + "d")
def datagram(): loose(socket.SOCK_DGRAM)
def raw(): loose(socket.SOCK_RAW)
def memory(): r = libc.shmget(0, 4096, 0o1600); ok(r); ok(libc.shmctl(r, 0, None))
def queue(): r = libc.msgget(0, 0o1600); ok(r); ok(libc.msgctl(r, 0, None))
def lock(): r = libc.semget(0, 1, 0o1600); ok(r); ok(libc.semctl(r, 0, 0, None))
def pair(): a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
for way in tcp, fast, mptcp, udp, six, unix, netlink, ring, datagram, raw, memory, queue, lock, pair:
    try: way()
    except OSError as e: print(way.__name__, "no", e.errno == 1)
    else: print(way.__name__, "yes")
`

// Without Options.Network a command reaches nothing that listens, in whatever way; a pair of
// sockets within it works.
func TestShellHasNoNetwork(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil || !workspace.HoldsNetwork() {
		t.Skip("there is no python3, or no seccomp")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer local.Close()
	loose, err := net.ListenPacket("unixgram", path+"d") // such as that of the system's log
	require.NoError(t, err)
	defer loose.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for _, network := range []bool{false, true} {
		for _, unheld := range []bool{false, true} { // it does not rest on Landlock
			b := setup(t, &workspace.Options{Network: network, Confine: tool.ConfineWherePossible})
			if unheld {
				b.Unhold()
			}
			require.NoError(t, os.WriteFile(filepath.Join(b.root, "reach.py"), []byte(reach), 0o600))
			status, out := b.shell(t, "python3 reach.py "+port+" "+path)
			require.Equal(t, "[exit status 0]", status, out)
			if network {
				require.Contains(t, out, "tcp yes")
				require.Contains(t, out, "unix yes")
				require.NotContains(t, b.Confinement(), "They have no network.")
				continue
			}
			require.Equal(t, "tcp no True\nfast no True\nmptcp no True\nudp no True\nsix no True\nunix no True\nnetlink no True\nring no True\ndatagram no True\nraw no True\nmemory no True\nqueue no True\nlock no True\npair yes\n", out)
			require.Contains(t, b.Confinement(), "They have no network.")
		}
	}
}
