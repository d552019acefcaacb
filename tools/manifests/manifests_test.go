package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFilesHaveNoFaults(t *testing.T) {
	faults, err := check("../..")
	require.NoError(t, err)
	require.Empty(t, faults)
	_, err = check(t.TempDir())
	require.ErrorContains(t, err, "name the top of the tree")
}

// Each line breaks a file in one place.
func TestEveryBreakIsFound(t *testing.T) {
	for path, c := range map[string]struct {
		check  func(path string, data []byte) []string
		breaks [][3]string // what stands there, what then stands there, what is said
	}{
		"../../docs/kubernetes/worker.yaml": {kubernetes, [][3]string{
			{"replicas: 3", "replicaz: 3", `worker.yaml:35: strict decoding error: unknown field "spec.replicaz"`},
			{"replicas: 3", "replicas: three", "json: cannot unmarshal"},
			{"replicas: 3", "replicas: 3\n  replicas: 4", `"replicas" already set`},
			{"apiVersion: apps/v1", "apiVersion: apps/v2", `no kind "Deployment" is registered`},
			{"memory: 256Mi", "memory: lots", "quantities must match"},
			{"name: worker-2026-11-21-1", "name: worker_1", "RFC 1123"},
			{"template:\n    metadata:\n      labels: {app: fermata-worker, build", "template:\n    metadata:\n      labels: {app: fermata, build", "spec.selector does not match"},
			{"podSelector:\n    matchLabels: {app: fermata-worker}", "podSelector:\n    matchLabels: {app: fermata}", "NetworkPolicy/fermata-worker: its selector app=fermata matches no pod"},
			{"labelSelector:\n            matchLabels: {app: fermata-worker}", "labelSelector:\n            matchLabels: {app: fermata}", "topologySpreadConstraints[0]"},
			{"policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "has no Egress"},
			{"169.254.0.0/16, ", "", "reaches 169.254.169.254"},
			{"      ports:\n        - {protocol: TCP, port: 443}\n        - {protocol: TCP, port: 7233}\n", "", "spec.egress[1]: needs to and ports"},
			{"fermata:2026-11-21.1\n", "fermata:latest\n", "name a tag that stays"},
			{"fermata:2026-11-21.1\n", "fermata\n", "name a tag that stays"},
			{"requests: {cpu: 250m, memory: 256Mi}", "requests: {cpu: 250m}", "resources.requests: needs cpu and memory"},
			{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", `spec.template.spec.containers[0] "worker".securityContext`},
			{"runAsNonRoot: true", "runAsNonRoot: false", "spec.template.spec.securityContext"},
			{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n            privileged: true", "takes back what the pod's says"},
			{"serviceAccountName: fermata", "hostNetwork: true\n      serviceAccountName: fermata", "shares a namespace with its host"},
			{"apiVersion: v1\nkind: Namespace", "apiVersion: apps/v1\nkind: ControllerRevision", "nobody has said what to look at in a *v1.ControllerRevision"},
			{"serviceAccountName: fermata", "serviceAccountName: other", "no ServiceAccount/other"},
			{"key: TEMPORAL_NAMESPACE}", "key: NAMESPACE}", `no ConfigMap/fermata with a key "NAMESPACE"`},
			{"items: [{key: fermata.yaml,", "items: [{key: agents.yaml,", `no key "agents.yaml"`},
			{"{name: scratch, mountPath", "{name: scraps, mountPath", `no volume "scraps"`},
			{"            - {name: TEMPORAL_API_KEY_FILE", "            - {name: ANTHROPIC_API_KEY, value: sk-1}\n            - {name: TEMPORAL_API_KEY_FILE", "ANTHROPIC_API_KEY: a secret does not belong into a file"},
			{"kind: Namespace", "kind: Secret", "worker.yaml:1: Secret/fermata: a secret does not belong into a file"},
			{"exec:\n              command: [fermata, doctor, --agents, /etc/fermata/fermata.yaml]", "httpGet: {path: /healthz, port: health}", "startupProbe: the container has no port health"},
			{"exec:\n              command: [fermata, doctor, --agents, /etc/fermata/fermata.yaml]", "initialDelaySeconds: 1", "startupProbe asks nothing"},
		}},
		"../../Dockerfile": {dockerfile, [][3]string{
			{"COPY .git .git", "COPY . .", "Dockerfile:7: COPY .: copy .git"},
			{"COPY .git .git", "ADD https://example.com/x.tar.gz /", "Dockerfile:7: ADD fetches"},
			{"git reset --quiet --hard HEAD", "git status", "nothing checks a commit out"},
			{"FROM debian:bookworm-slim", "FROM debian", `image "debian"`},
		}},
		"../../.dockerignore": {dockerignore, [][3]string{
			{"*\n", "", "the first rule is no *"},
			{"!.git\n", "!.git\n!cmd\n", "!cmd lets in"},
			{".git/config\n", "", ".git/config is let in"},
		}},
		"../../docker-compose.yml": {compose, [][3]string{
			{"restart: unless-stopped", "restarts: unless-stopped", "services.worker.restarts"},
			{"interval: 30s", "interval: often", "invalid duration"},
			{"${OPENAI_API_KEY:-}", "${OPENAI_API_KEY}", "OPENAI_API_KEY"},
			{"${OPENAI_API_KEY:-}", "${OPENAI_API_KEY:?set it", "invalid interpolation format"},
			{"setup: {condition: service_completed", "setups: {condition: service_completed", "depends on undefined service"},
			{"- data:/data", "- date:/data", "undefined volume date"},
			{"build: .", "build: ./docker", "services.setup.build"},
			{"./examples/agents:", "./examples/agent:", "services.worker.volumes"},
			{"temporalio/ui:2.54.1", "temporalio/ui", "services.ui.image"},
			{`"127.0.0.1:8080:8080"`, `"8080:8080"`, "services.ui.ports: 8080 is open to other machines"},
			{"setup: {condition: service_completed_successfully}", "setup: {condition: service_healthy}", "services.worker.depends_on: setup has no healthcheck"},
		}},
		"../../docs/grafana/fermata.json": {grafana, [][3]string{
			{`"id": 2,`, `"id": 2`, "fermata.json:78: invalid character"},
			{`"id": 2,`, `"id": 1,`, `"Runs that ended, by how" has the id 1, too`},
			{`"y": 8,`, `"y": 7,`, "lies over"},
			{`"expr": "sum by (fermata_outcome) (`, `"expr": "sum by (fermata_outcome) `, "does not end where it began"},
			{`~\"$agent\"}`, `~\"$agents\"}`, `declares no "agents"`},
			{`"refId": "B"`, `"refId": "A"`, `two targets are "A"`},
			{`"uid": "fermata"`, `"uid": ""`, "needs a title, a uid"},
		}},
	} {
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, b := range c.breaks {
			t.Run(b[1], func(t *testing.T) {
				require.Contains(t, string(good), b[0])
				said := strings.Join(c.check(path, []byte(strings.Replace(string(good), b[0], b[1], 1))), "\n")
				require.Contains(t, said, b[2])
				require.Contains(t, said, path)
			})
		}
	}
}
