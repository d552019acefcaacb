// Package workspace gives a model the tools of a programmer within one directory:
// fs_read, fs_list, fs_grep, fs_write and shell_run.
//
//	w, err := workspace.Open("/srv/checkout", nil)
//	if err != nil {
//		return err
//	}
//	defer w.Close()
//	tools := w.Tools()
//
// A workspace is a directory of one machine. Workers that share a task queue must share
// it too: any of them may run a call.
//
// # What confines the file tools
//
// Every file is opened through an [os.Root]. Neither "..", an absolute path nor a symlink
// leads out of the workspace, even if something is swapped while the tool runs. Absolute
// paths into the workspace are read as relative ones. Absolute paths into
// [Options.ExternalRoots] are confined to these in the same way.
//
// Files that usually hold secrets are refused for reading and writing, left out of
// searches, and shown as protected in listings. That holds behind a symlink too, and in
// upper or lower case. Such files are: .env, .env.* and .env-* (but not .env.example,
// .sample, .template and .dist), .envrc, private keys and key stores (id_rsa, *.pem,
// *.key, *.p12, *.pfx, …), credentials (.netrc, .npmrc, .pypirc, .git-credentials,
// credentials.json, secrets.yml, kubeconfig, temporal.toml, .aws, .ssh, .gnupg, …),
// Terraform's state and variables, shell histories, and exported sessions. Files under
// .git may be read, except for its config; only git may write them.
// [Options.AllowSensitive] removes all of these limits. A file is opened under the names
// that were checked, whatever is swapped meanwhile. Two cases are not recognised: a hard
// link to a secret under a plain name, and a secret that a command renamed.
//
// # What no tool touches
//
// [Options.Protect] and [Options.Private] name what belongs to the worker: what decides
// which programs run, keys, what other sessions said. fs_write identifies these paths by
// device and inode, or by directory and name, and refuses them behind symlinks and hard
// links too. The kernel can allow commands only whole directories. So shell_run refuses
// every command while one of these paths lies where commands may write.
// [Workspace.CheckShell] and [Workspace.CheckWrite] report this before a run does.
//
// # What confines the shell
//
// A command runs in a session of its own, without a terminal. When it ends, its time is
// up or the call is cancelled, its process group gets SIGTERM, and half a second later
// SIGKILL. The group also ends when this process is killed. On Linux a mark that no
// program can remove finds processes that left the group; they are ended too. The answer
// names processes that can't be ended.
//
// The environment is a short list without keys of this process. HOME is a directory of
// the session, kept between its commands for caches of tools. It is not the user's home.
//
// On Linux the kernel confines the command and all that it starts. It may write in the
// workspace, HOME, a temporary directory that is removed afterwards, and [Options.Write].
// Besides these it may read the system's directories (/usr, /etc, /proc, …), what is on
// the PATH, known toolchains in the real home, and [Options.Read]. It can't look into
// other processes, nor signal them (since Linux 6.12). Its only capability is to serve on
// a low port, and it can't set setuid or setgid bits. Unless [Options.Network] is set it
// has no network, and no sockets of any kind. So it can't ask Temporal to approve what
// its model asked for, or Docker to become root. A test that talks to its own server
// needs Network as well.
//
// This takes Linux 6.2 with Landlock and seccomp, on amd64 or arm64. Elsewhere commands
// are refused unless [Options.Confine] says otherwise; they then have the rights of this
// process's user. If this process is root they are refused unless [Options.AsRoot] says
// otherwise. [Workspace.Confined] reports whether the kernel confines commands, and
// [Workspace.Confinement] describes it.
//
// A command may have 8,192 processes of the user, files of 16 GiB, and no core file. If
// memory runs out, the kernel ends commands before this process.
//
// Do not rely on it for these:
//   - Secrets inside the workspace. The file tools refuse them, but a command can read
//     them, since Landlock grants whole directories. Keep them elsewhere, or leave out
//     shell_run.
//   - With Network, sockets with a path, such as Docker's or a session bus, if the user
//     may open them. Whoever may talk to Docker is root.
//   - Modes and times of files outside that belong to the user of this process.
//   - CPU, memory and disk.
//   - Processes that left a command's group, when this process is killed.
//   - A file outside that has a hard link in the workspace.
//   - What a person later does with written files: a Makefile, a hook.
//
// It protects against a model that makes mistakes. Against a model that attacks, run the
// worker as a user of its own, in a container or a virtual machine.
//
// # What the runtime knows about these tools
//
// fs_read and fs_list are quick and change nothing (Local). fs_grep changes nothing, but
// may take long. These three are tried twice. fs_write and shell_run are tried once:
// doing them again is not the same. A path that does not exist or is not allowed is
// refused, like wrong arguments, so that nobody retries it unchanged. Only trouble with
// the disk is a failure. A command that fails, runs out of time or is cancelled is a
// result. It begins with how the command ended; the output so far follows.
package workspace
