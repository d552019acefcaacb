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
// under .git is read, but for its config, and only git may write it.
// [Options.AllowSensitive] lifts all of this. A file is opened by the names that were
// checked, whatever is exchanged meanwhile; a hard link to a secret under a plain name,
// and a secret that a command has moved to one, are not recognised.
//
// # What holds the shell
//
// A command runs as a process group of its own. When the command ends, its time
// is up or the call is cancelled, the whole group is ended: SIGTERM, half a
// second later SIGKILL. The group also ends when this process is killed. On
// Linux, what has left the group (setsid) is found and ended too, unless it has
// removed its environment or hides it from this user, as ssh-agent does.
//
// The environment is a short list; no key of this process is in it. HOME is a
// directory of the session's own, kept between its commands so that tools find
// their caches, and not the real one.
//
// On Linux with Landlock the kernel holds the command and all that it starts:
// it may write beneath the workspace, HOME, a temporary directory that is
// removed afterwards and [Options.Write], and read besides these only the
// system's directories (/usr, /etc, /proc, …), what is on the PATH, known
// toolchains in the real home and [Options.Read]. It can't look into processes
// outside, this one included, nor signal them (from Linux 6.12 on), and of
// root's capabilities it has those that are about files. [Workspace.Confined]
// reports whether the kernel does that (from Linux 6.2 on; on older ones in part),
// and [Workspace.Confinement] says it in words.
//
// Elsewhere a command can do what the user of this process can do: read its
// files and its environment, too. [Options.MustConfine] refuses commands there.
//
// On Linux with seccomp, on amd64 and arm64, a command has no network unless
// [Options.Network] says so: no socket of any kind, so that it can't ask Temporal to
// approve what its model asked for, or Docker to be root. What listens and asks within
// one command, such as the test of a server, needs Network as well.
//
// What nothing here holds, so that nobody relies on it:
//   - Secrets inside the workspace. The file tools refuse them; a command can
//     read them, since Landlock grants whole directories. Keep them elsewhere,
//     or leave out shell_run.
//   - With Network, sockets with a path, such as Docker's or a session bus, if the
//     user may open them: whoever may speak to Docker is root.
//   - Modes and times of files outside that belong to the user of this process.
//   - CPU, memory and disk.
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
