package workspace_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

// everyTool calls each tool of files with one path.
var everyTool = map[string]func(path string) args{
	"fs_read":  func(path string) args { return args{"path": path} },
	"fs_list":  func(path string) args { return args{"path": path} },
	"fs_grep":  func(path string) args { return args{"path": path, "pattern": "s3cret"} },
	"fs_write": func(path string) args { return args{"path": path, "content": "overwritten"} },
}

func TestNothingLeavesTheWorkspace(t *testing.T) {
	b := setup(t, nil)
	b.link(t, filepath.Join(b.outside, "secret"), "absolute")
	b.link(t, "../outside/secret", "relative")
	b.link(t, "../outside", "dir")
	b.link(t, "dir", "chain")
	b.link(t, "/", "slash")
	b.link(t, "..", "up")
	b.put(t, "sub/file", "text")
	b.link(t, "../../outside/secret", "sub/deep")
	b.link(t, "../outside/not-yet", "dangling")
	paths := []string{
		"..", "../outside/secret", "sub/../../outside/secret", "./.././outside/secret", "../../../../../../etc/passwd",
		"/etc/passwd", "/", filepath.Join(b.outside, "secret"), b.root + "/../outside/secret", b.root + "-not",
		"absolute", "relative", "dir/secret", "chain/secret", "slash/etc/passwd", "up/outside/secret", "sub/deep", "dangling",
	}
	for name, in := range everyTool {
		for _, path := range paths {
			b.refused(t, name, in(path), name+" refused: ")
			_, err := b.do(name, in(path))
			require.ErrorContains(t, err, "is outside the workspace", "%s %s", name, path)
		}
	}
	text, err := os.ReadFile(filepath.Join(b.outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
	require.NoFileExists(t, filepath.Join(b.outside, "not-yet"))
	b.refused(t, "fs_read", args{"path": "../../etc/passwd"}, "fs_read refused: ../../etc/passwd is outside the workspace")
	b.refused(t, "shell_run", args{"command": "cat secret", "dir": "dir"}, "is outside the workspace")
}

func TestPathsThatAreNone(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "file", "text")
	b.link(t, "loop-b", "loop-a")
	b.link(t, "loop-a", "loop-b")
	for name, in := range everyTool {
		b.refused(t, name, in("file\x00.txt"), "NUL")
		b.refused(t, name, in(strings.Repeat("a/", 3000)), "longer than")
		b.refused(t, name, in(strings.Repeat("a", 300)), "too long")
		b.refused(t, name, in("file/below"), "leads through a file")
		b.refused(t, name, in("loop-a"), "too many symlinks")
	}
	b.refused(t, "fs_read", args{"path": "nowhere"}, "nowhere does not exist")
	b.refused(t, "fs_list", args{"path": "nowhere"}, "nowhere does not exist")
	b.refused(t, "fs_grep", args{"path": "nowhere", "pattern": "x"}, "nowhere does not exist")
	b.refused(t, "fs_read", args{"path": ""}, "is a directory")
	b.refused(t, "fs_read", args{"path": "bad\nname"}, `"bad\nname" does not exist`)
	b.refused(t, "fs_list", args{"path": "file"}, "no directory")
	b.refused(t, "fs_write", args{"path": ".", "content": "x"}, "is a directory")
}

func TestPathsWithinAreTaken(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "a/b/file", "text")
	b.link(t, "a/b", "inner")
	b.link(t, filepath.Join(b.root, "a"), "absolute")
	b.link(t, "../b/file", "a/b/round")
	for _, path := range []string{
		"a/b/file", "./a//b/file", "a/../a/b/file", filepath.Join(b.root, "a/b/file"), b.root + "/a/./b/../b/file",
		"inner/file", "absolute/b/file", "a/b/round", "inner/round",
	} {
		require.Equal(t, "text", b.ok(t, "fs_read", args{"path": path}), path)
	}
	// What is written through a symlink goes where it points, and it stays.
	b.ok(t, "fs_write", args{"path": "inner/round", "content": "new"})
	require.Equal(t, "new", b.get(t, "a/b/file"))
	info, err := os.Lstat(filepath.Join(b.root, "a/b/round"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// What was a directory when a path was checked is a symlink when it is opened.
func TestSymlinkSwappedAfterTheCheck(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "way/secret", "harmless")
	b.put(t, "plain", "harmless")
	b.put(t, ".env", "s3cret")
	place, err := b.Place("way/secret")
	require.NoError(t, err)
	plain, err := b.Place("plain")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, "way")))
	require.NoError(t, os.Remove(filepath.Join(b.root, "plain")))
	b.link(t, b.outside, "way")
	b.link(t, ".env", "plain")
	for _, path := range []string{place, plain} {
		text, err := b.Open(path)
		require.Error(t, err)
		require.Empty(t, text)
	}
	require.Error(t, b.Replace(place, "overwritten"))
	require.Error(t, b.Replace(filepath.Join("way", "new", "file"), "overwritten"))
	require.NoError(t, b.Replace(plain, "not through the symlink"))
	require.Equal(t, "s3cret", b.get(t, ".env"))
	entries, err := os.ReadDir(b.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// What was a plain directory when a path was checked is a symlink to one with secrets in
// the workspace when it is opened.
func TestDirectorySwappedForOneWithSecrets(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "way/key", "harmless")
	b.put(t, ".ssh/key", "s3cret")
	place, err := b.Place("way/key")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, "way")))
	b.link(t, ".ssh", "way")
	text, err := b.Open(place)
	require.Error(t, err)
	require.Empty(t, text)
	require.Error(t, b.Replace(place, "overwritten"))
	require.Error(t, b.Replace(filepath.Join("way", "new", "key"), "overwritten"))
	require.Equal(t, "s3cret", b.get(t, ".ssh/key"))
	require.NoDirExists(t, filepath.Join(b.root, ".ssh", "new"))
}

// A directory on the way is swapped for a symlink to the outside, over and
// over. No call may ever see or change what is there.
func TestSymlinkSwappedUnderway(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "real/secret", "harmless")
	way, spare, link := filepath.Join(b.root, "way"), filepath.Join(b.root, "real"), filepath.Join(b.root, "link")
	require.NoError(t, os.Symlink(b.outside, link))
	require.NoError(t, os.Rename(spare, way))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(way, spare)
			os.Rename(link, way)
			os.Rename(way, link)
			os.Rename(spare, way)
		}
	}()
	for range 150 {
		if text, err := b.do("fs_read", args{"path": "way/secret"}); err == nil {
			require.NotContains(t, text, "s3cret")
		}
		if text, err := b.do("fs_grep", args{"path": "way", "pattern": "s3cret"}); err == nil {
			require.Contains(t, text, "[0 matches")
		}
		b.do("fs_write", args{"path": "way/secret", "content": "harmless"})
	}
	close(stop)
	<-done
	text, err := os.ReadFile(filepath.Join(b.outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
	entries, err := os.ReadDir(b.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "something was written outside")
}

func TestPipesAreNotWaitedFor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no named pipes in directories")
	}
	b := setup(t, nil)
	require.NoError(t, mkfifo(filepath.Join(b.root, "pipe")))
	b.refused(t, "fs_read", args{"path": "pipe"}, "no regular file")
	b.refused(t, "fs_write", args{"path": "pipe", "content": "x"}, "no regular file")
	require.Contains(t, b.ok(t, "fs_grep", args{"pattern": "x"}), "[0 matches")
	require.Contains(t, b.ok(t, "fs_list", args{}), "pipe  (p")
}

func TestUnreadableFile(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "closed", "text")
	b.put(t, "open", "text")
	require.NoError(t, os.Chmod(filepath.Join(b.root, "closed"), 0))
	asNobody(t, func() {
		b.refused(t, "fs_read", args{"path": "closed"}, "may not be touched by this worker")
		require.Contains(t, b.ok(t, "fs_grep", args{"pattern": "text"}), "[1 match in 1 file; left out: 1 unreadable]")
	})
}

// Files that usually hold secrets are neither read nor written (HA-114).
func TestSensitiveFiles(t *testing.T) {
	secret := []string{
		".env", ".ENV", ".env.local", ".Env.Production", "prod.env", ".envrc", ".env.bak", ".env~", "sub/.env", "id_rsa", "ID_RSA",
		"id_ed25519", "id_ed25519_work", "server.pem", "server.KEY", "server.key.old", "store.p12", "store.pfx", ".netrc", "_netrc",
		".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".aws/credentials", "deep/.aws/credentials", ".ssh/config", ".SSH/known_hosts",
		".gnupg/x", ".docker/config.json", ".kube/config", ".config/gcloud/x/y", ".cargo/credentials.toml", ".env.", ".env::$DATA",
		".env-production", "credentials.json", "client_secret.json", "deploy/secrets.yml", "Secrets.yaml", "kubeconfig", "prod.kubeconfig",
		"terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "prod.auto.tfvars.json", ".bash_history", ".zsh_history",
		"temporal.toml", "trip.export", "secrets.prod.yaml", "secret.json", "credentials.yml", "service-account-7.json", "kubeconfig-prod.yaml",
		".fish_history", ".psql_history", "host.keytab", ".m2/settings.xml", ".config/git/credentials", ".gitconfig", "auth.json",
	}
	plain := []string{
		".env.example", ".env-example", ".env.local.sample", "secrets.go", "export", "main.tf", "secrets.example.yaml", "credentials.sample.json", "history", ".ENV.Template", ".env.dist", "environment", "env.go", "id_rsa.pub", "id_rsa_test.go",
		"keys.go", "monkey", "pem", "credentials", "aws/credentials", ".docker/nginx.conf", ".config/other", "ssh/config",
	}
	b := setup(t, nil)
	for _, path := range append(secret, plain...) {
		b.put(t, path, "s3cret")
	}
	for _, path := range secret {
		b.refused(t, "fs_read", args{"path": path}, "is protected")
		b.refused(t, "fs_write", args{"path": path, "content": "x"}, "is protected")
		b.refused(t, "fs_grep", args{"path": path, "pattern": "s3cret"}, "is protected")
	}
	for _, path := range plain {
		require.Equal(t, "s3cret", b.ok(t, "fs_read", args{"path": path}), path)
	}
	b.refused(t, "fs_write", args{"path": "new/.env", "content": "x"}, "is protected")
	b.refused(t, "fs_list", args{"path": ".ssh"}, "is protected")

	found := b.ok(t, "fs_grep", args{"pattern": "s3cret"})
	listed := b.ok(t, "fs_list", args{"depth": 5})
	require.Contains(t, found, "protected")
	require.Contains(t, listed, ".env  6 B  (protected)\n")
	require.Contains(t, listed, ".ssh/  (protected)")
	require.NotContains(t, listed, "known_hosts")
	for _, path := range secret {
		require.NotContains(t, found, "\n"+path+":")
	}
	for _, path := range plain {
		require.Contains(t, found, "\n"+path+":1: s3cret")
		require.NotContains(t, listed, "\n"+path+"  6 B  (protected)")
	}
}

func TestSensitiveFilesBehindSymlinks(t *testing.T) {
	b := setup(t, nil)
	b.put(t, ".env", "s3cret")
	b.put(t, ".ssh/notes", "s3cret")
	b.link(t, ".env", "notes.txt")
	b.link(t, ".ssh", "public")
	b.refused(t, "fs_read", args{"path": "notes.txt"}, "is protected")
	b.refused(t, "fs_read", args{"path": "public/notes"}, "is protected")
	b.refused(t, "fs_write", args{"path": "notes.txt", "content": "x"}, "is protected")
	require.Contains(t, b.ok(t, "fs_grep", args{"pattern": "s3cret"}), "[0 matches")
	require.Equal(t, "s3cret", b.get(t, ".env"))
}

func TestAllowSensitive(t *testing.T) {
	b := setup(t, &workspace.Options{AllowSensitive: true})
	b.put(t, ".env", "s3cret")
	require.Equal(t, "s3cret", b.ok(t, "fs_read", args{"path": ".env"}))
	require.Contains(t, b.ok(t, "fs_grep", args{"pattern": "s3cret"}), ".env:1: s3cret")
	require.NotContains(t, b.ok(t, "fs_list", args{}), "protected")
	b.ok(t, "fs_write", args{"path": ".env", "content": "new"})
	b.ok(t, "fs_write", args{"path": ".git/config", "content": "new"})
	require.Equal(t, "new", b.ok(t, "fs_read", args{"path": ".git/config"}))
	b.refused(t, "fs_read", args{"path": "../outside/secret"}, "is outside the workspace")
}

func TestGitsOwnIsReadAndNotWritten(t *testing.T) {
	b := setup(t, nil)
	b.put(t, ".git/HEAD", "text")
	b.link(t, ".git", "other")
	require.Equal(t, "text", b.ok(t, "fs_read", args{"path": ".git/HEAD"}))
	for _, path := range []string{".git/config", ".git/config.worktree", ".git/modules/sub/config", "other/config"} { // a URL with a token in it
		b.put(t, path, "s3cret")
		b.refused(t, "fs_read", args{"path": path}, "is protected")
	}
	for _, path := range []string{".git/config", ".git/hooks/pre-commit", ".GIT/x", "sub/.git/x", ".git", "other/x"} {
		b.refused(t, "fs_write", args{"path": path, "content": "x"}, "")
	}
	b.ok(t, "fs_write", args{"path": ".gitignore", "content": "x"})
}

// A failure that is nobody's fault is no refusal: it may be tried again.
func TestTroubleIsAFailure(t *testing.T) {
	b := setup(t, nil)
	require.NoError(t, b.Close())
	_, err := b.do("fs_read", args{"path": "a"})
	require.Error(t, err)
	require.NotErrorIs(t, err, agent.CodeDenied)
	require.NotErrorIs(t, err, syscall.ENOENT)
}
