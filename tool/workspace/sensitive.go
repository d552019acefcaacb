package workspace

import (
	"path/filepath"
	"slices"
	"strings"
)

// Names of files that usually hold secrets, in lower case.
var (
	secretFiles = []string{
		".env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd",
		".dockercfg", ".vault-token", ".terraformrc", ".boto", ".s3cfg", "application_default_credentials.json",
		"client_secret.json", "auth.json", "kubeconfig", "temporal.toml", ".gitconfig", ".yarnrc.yml", ".vault_pass", "pip.conf",
		"gradle.properties",
	}
	secretEnds = []string{".env", ".pem", ".key", ".p8", ".p12", ".pfx", ".pkcs12", ".ppk", ".jks", ".keystore", ".kdbx", ".tfstate", ".tfvars", ".tfvars.json", ".kubeconfig", ".export", ".keytab", ".ovpn", "_history"}
	secretDirs = []string{".ssh", ".gnupg", ".password-store"}
	// secretPaths are ends of paths, of files or directories whose last name alone says
	// nothing.
	secretPaths = []string{
		".aws/credentials", ".aws/cli", ".aws/sso", ".azure/accesstokens.json", ".azure/msal_token_cache.json", ".cargo/credentials",
		".cargo/credentials.toml", ".config/gcloud", ".config/gh", ".config/hub", ".docker/config.json", ".gem/credentials", ".kube/config", ".config/git/credentials", ".m2/settings.xml",
	}
	// secretData are beginnings of names of files that end in dataEnds:
	// secrets.prod.yaml.
	secretData = []string{"secret", "credential", "service-account", "service_account", "kubeconfig"}
	dataEnds   = []string{".json", ".yml", ".yaml", ".toml"}
	// privateKeys are beginnings of names of ssh's private keys: id_rsa_work.
	privateKeys = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
	// copyEnds are endings of copies that editors and careful people make.
	copyEnds = []string{"~", ".bak", ".backup", ".old", ".orig", ".save"}
	// plainEnds are endings of .env files that are meant to be read.
	plainEnds = []string{".example", ".sample", ".template", ".dist", "-example", "-sample", "-template", "-dist"}
)

func (w *Workspace) protected(place string) bool { return !w.opts.AllowSensitive && Sensitive(place) }

// Sensitive reports whether a path, or a directory on its way, usually holds secrets, by its names:
// ".env", "id_rsa", ".aws/credentials". It ignores case, since some file systems do. Tools do not
// read such files unless [Options] allow it.
func Sensitive(place string) bool {
	names := strings.Split(strings.ToLower(filepath.ToSlash(place)), "/")
	for i, name := range names {
		// Windows reads "name. " and "name:stream" as name.
		name, _, _ = strings.Cut(name, ":")
		names[i] = strings.TrimRight(name, ". ")
		if secretName(names[i]) || slices.Contains(secretDirs, names[i]) {
			return true
		}
		// The URLs in git's config may contain tokens.
		if strings.HasPrefix(names[i], "config") && slices.Contains(names[:i], ".git") {
			return true
		}
		if i > 0 && slices.ContainsFunc(secretPaths, func(end string) bool {
			way := strings.Join(names[:i+1], "/")
			return way == end || strings.HasSuffix(way, "/"+end)
		}) {
			return true
		}
	}
	return false
}

func secretName(name string) bool {
	for _, end := range copyEnds {
		name = strings.TrimSuffix(name, end)
	}
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	begins := func(start string) bool { return strings.HasPrefix(name, start) }
	switch {
	case strings.HasPrefix(name, ".env."), strings.HasPrefix(name, ".env-"):
		return !slices.ContainsFunc(plainEnds, ends)
	case filepath.Ext(name) == "" && slices.ContainsFunc(privateKeys, begins):
		return true
	case slices.ContainsFunc(secretData, begins) && slices.Contains(dataEnds, filepath.Ext(name)):
		return !slices.ContainsFunc(plainEnds, func(end string) bool { return strings.Contains(name, end) })
	}
	return slices.Contains(secretFiles, name) || slices.ContainsFunc(secretEnds, ends)
}
