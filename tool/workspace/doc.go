// Package workspace gives a model the tools of a programmer within one
// directory: fs_read, fs_list, fs_grep, fs_write and shell_run.
//
//	w, err := workspace.Open("/srv/checkout", nil)
//	if err != nil {
//		return err
//	}
//	defer w.Close()
//	tools := w.Tools()
//
// A workspace is a directory of one machine. Workers that share a task queue
// must share it too, or a call is made in the directory of whichever takes it.
//
// # What holds the file tools
//
// Every file is opened through an [os.Root], so that neither "..", an absolute
// path nor a symlink leads out of the workspace, also when it is swapped while
// the tool runs. Absolute paths that lead into it are taken as relative ones;
// those that lead into one of [Options.ExternalRoots] are held there likewise.
//
// Files that usually hold secrets are refused for reading and writing, left out
// of searches and shown as protected in listings, also behind a symlink and in
// any case of letters: .env, .env.* and .env-* (but not .env.example, .sample,
// .template and .dist), .envrc, private keys and key stores (id_rsa, *.pem, *.key,
// *.p12, *.pfx, …), what logs in elsewhere (.netrc, .npmrc, .pypirc, .git-credentials,
// credentials.json, secrets.yml, kubeconfig, temporal.toml, .aws, .ssh, .gnupg, …),
// Terraform's state and variables, histories of shells, exported sessions. What lies
// under .git is read, except for its config, and only git may write it.
// [Options.AllowSensitive] lifts all of this. A file is opened by the names that were
// checked, whatever is exchanged meanwhile; a hard link to a secret under a plain name,
// and a secret that a command has moved to one, are not recognised.
//
// # What no tool touches
//
// [Options.Protect] and [Options.Private] name what is the worker's own: what says which
// programs run, keys, what other sessions said. fs_write refuses these paths by what they
// are (device and inode, or directory and name), also behind a symlink or a hard link. The
// kernel allows commands whole directories, so shell_run refuses every command while one of
// these paths lies where commands may write. [Workspace.CheckShell] and
// [Workspace.CheckWrite] tell so before a run does.
//
// # What holds the shell
//
// A command runs in a session of its own, without a terminal. When the command ends, its
// time is up or the call is cancelled, its process group is ended: SIGTERM, half a second
// later SIGKILL. The group also ends when this process is killed. On Linux, what has left
// the group is found by a mark that no program can take off, and ended too; what can't be
// ended is named in the answer.
//
// The environment is a short list; no key of this process is in it. HOME is a
// directory of the session's own, kept between its commands so that tools find
// their caches, and not the real one.
//
// On Linux the kernel holds the command and all that it starts. It may write beneath the
// workspace, HOME, a temporary directory that is removed afterwards and [Options.Write],
// and read besides these only the system's directories (/usr, /etc, /proc, …), what is on
// the PATH, known toolchains in the real home and [Options.Read]. It can't look into
// processes outside, this one included, nor signal them (from Linux 6.12 on). It has no
// capability but to serve on a low port, sets no setuid or setgid bit, and has no network
// unless [Options.Network] says so: no socket of any kind, so that it can't ask Temporal to
// approve what its model asked for, or Docker to be root. What listens and asks within one
// command, such as the test of a server, needs Network as well.
//
// That takes Linux 6.2 with Landlock and seccomp, on amd64 or arm64. Elsewhere commands are
// refused unless [Options.Confine] says otherwise; they can then do what the user of this
// process can do. Where this process is root they are refused unless [Options.AsRoot] says
// otherwise. [Workspace.Confined] reports whether the kernel holds commands, and
// [Workspace.Confinement] says it in words.
//
// A command may have 8,192 processes of the user, files of 16 GiB, and no core file. Where
// memory is short, the kernel ends commands before this process.
//
// What nothing here holds, so that nobody relies on it:
//   - Secrets inside the workspace. The file tools refuse them; a command can
//     read them, since Landlock grants whole directories. Keep them elsewhere,
//     or leave out shell_run.
//   - With Network, sockets with a path, such as Docker's or a session bus, if the
//     user may open them: whoever may speak to Docker is root.
//   - Modes and times of files outside that belong to the user of this process.
//   - CPU, memory and disk.
//   - What has left the group of a command when this process is killed.
//   - A file outside that has a hard link in the workspace.
//   - What a person does later with what was written: a Makefile, a hook.
//
// It is a belt for a model that errs. Against one that attacks, run the worker
// as a user of its own in a container or a virtual machine.
//
// # What the runtime is told
//
// fs_read and fs_list are quick and change nothing (Local). fs_grep changes
// nothing, but may take its time. These three are made twice when they fail.
// fs_write and shell_run are made once: a replacement or a command that was
// made already is not the same when it is made again. A path that is not there
// or may not be touched is refused, as wrong arguments are, so that nobody
// tries it again unchanged; only trouble with the disk is a failure. A command
// that fails, runs out of time or is cancelled is a result: it says so first, and
// then what was written until then.
package workspace
