package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is the id of a user of Linux who owns nothing.
const nobody = 65534

// asNobody gives all files of the machine to a user without rights, where the test may do
// that: root may write everywhere. The commands that it returns are run by that user,
// from a program that the user can reach.
func (b *bench) asNobody() (program string, command func(args ...string) *exec.Cmd) {
	b.t.Helper()
	if os.Getuid() != 0 {
		return os.Args[0], b.command
	}
	root := filepath.Dir(b.dir)
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(b.t, os.Chmod(dir, 0o755))
	}
	program = filepath.Join(root, "fermata") // where nobody may go
	if os.Link(os.Args[0], program) != nil { // it is on another file system
		text, err := os.ReadFile(os.Args[0])
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(program, text, 0o755))
	}
	require.NoError(b.t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
	return program, func(args ...string) *exec.Cmd {
		cmd := b.command(args...)
		cmd.Path, cmd.Args[0] = program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
}

// An audit that another user wrote, and a folder where no lock file can be made, are found
// before a run meets them.
func TestDoctorFindsWhatItsUserMayNotWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	record, _ := audited(b)
	require.NoError(t, os.MkdirAll(filepath.Dir(record), 0o700))
	writeFile(t, record, "")
	b.desk()
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	program, command := b.asNobody()
	b.write("fermata.yaml", `
agents: {clerk: {model: "script:s.yaml", tools: ["mcp:desk"]}}
mcp: {desk: {command: ["`+program+`"], env: {`+asMCP+`: "`+b.desk()+`"}, confine: never}}
`)
	if os.Getuid() == 0 { // it was written by root
		require.NoError(t, os.Chmod(filepath.Join(b.dir, "fermata.yaml"), 0o644))
	}
	doctor := func() ran {
		t.Helper()
		return b.ends(command("doctor"))
	}
	r := doctor()
	require.Contains(t, r.out, "ok   audit       "+record+"\n")
	require.Contains(t, r.out, "ok   lock        desk is pinned in fermata.lock when it is first used\n")

	require.NoError(t, os.Chmod(record, 0o400))
	r = doctor()
	require.NotZero(t, r.exit, r.out)
	require.Contains(t, r.out, "FAIL audit       the audit in "+record+" can't be written: open "+record+": permission denied\n")
	require.NoError(t, os.Chmod(record, 0o600))

	require.NoError(t, os.Chmod(b.dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(b.dir, 0o700) })
	r = doctor()
	require.NotZero(t, r.exit, r.out)
	lock := filepath.Join(b.dir, "fermata.lock")
	require.Contains(t, r.out, "FAIL lock        what a source lists is not pinned yet, and the lock file "+lock+" can't be written: open "+lock+".new: permission denied. Run \"fermata lock --accept\" where it can be, and deploy it with the agents file\n")
	require.NotContains(t, r.out, "is pinned in fermata.lock when it is first used")
}
