package devserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	"github.com/fermata-agents/fermata/agent"
)

func TestSearchAttributes(t *testing.T) {
	c := dial(t, ForPackage(t))
	work(t, c, registerGreeter)
	require.NoError(t, run(t, c, "", greeter, t.Name()).Get(t.Context(), nil))
	require.Eventually(t, func() bool {
		found, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: agent.AttrAgent + " = '" + t.Name() + "'",
		})
		return err == nil && found.GetCount() == 1
	}, long, 10*time.Millisecond)
}

func retentionOf(t *testing.T, s *Server) time.Duration {
	t.Helper()
	ns, err := dial(t, s).WorkflowService().DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace()})
	require.NoError(t, err)
	return ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	first := start(t, &Options{DataDir: dir})
	assert.Equal(t, defaultRetention, retentionOf(t, first))
	shared := start(t, &Options{DataDir: dir, Retention: time.Hour})
	assert.Equal(t, defaultRetention, retentionOf(t, shared), "only the owner sets it")
	first.Stop()
	assert.Equal(t, time.Hour, retentionOf(t, start(t, &Options{DataDir: dir, Retention: time.Hour})))
}

// olderFile makes the file of a version that knew only these search attributes.
func olderFile(t *testing.T, dir string, attributes map[string]enumspb.IndexedValueType) {
	t.Helper()
	path := filepath.Join(dir, databaseName)
	require.NoError(t, createSchema(t.Context(), path))
	cfg := fileConfig(path)
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, "default", false, attributes)
	require.NoError(t, err)
	require.NoError(t, sqliteschema.CreateNamespaces(&cfg, ns))
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, &cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	require.NoError(t, err)
	require.NoError(t, connectionsOf(db).Close())
}

func TestOlderFileGetsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	olderFile(t, dir, map[string]enumspb.IndexedValueType{
		agent.AttrStatus: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"Theirs":         enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	})
	s := start(t, &Options{DataDir: dir})
	assert.Equal(t, defaultRetention, retentionOf(t, s))
	c := dial(t, s)
	known, err := c.OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: s.Namespace()})
	require.NoError(t, err)
	assert.Contains(t, known.GetCustomAttributes(), "Theirs")
	for _, a := range agent.Attributes() {
		assert.Equal(t, indexedType(a), known.GetCustomAttributes()[a.Name], a.Name)
	}
	work(t, c, registerGreeter)
	require.NoError(t, run(t, c, "w", greeter, "you").Get(t.Context(), nil))
}

func TestAttributeOfAnotherType(t *testing.T) {
	dir := t.TempDir()
	olderFile(t, dir, map[string]enumspb.IndexedValueType{
		agent.AttrAgent: enumspb.INDEXED_VALUE_TYPE_INT,
	})
	_, err := Start(t.Context(), &Options{DataDir: dir})
	assert.ErrorContains(t, err, agent.AttrAgent+" is a Int")
}

// The name of the data directory may mean something to SQLite.
func TestAwkwardDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "what? 100%25 #1 &c=d")
	s := start(t, &Options{DataDir: dir})
	dial(t, s)
	assert.FileExists(t, filepath.Join(dir, databaseName))
	assert.FileExists(t, filepath.Join(dir, databaseName+"-wal"))
	s.Stop()
	assert.NoFileExists(t, filepath.Join(dir, databaseName+"-wal"), "the last connection was closed")
}

// A process that was killed while it laid out the schema leaves an empty file.
func TestEmptyFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, databaseName), nil, 0o600))
	dial(t, start(t, &Options{DataDir: dir}))
}

func TestFileThatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	garbage := make([]byte, 8192)
	copy(garbage, "something else altogether")
	require.NoError(t, os.WriteFile(path, garbage, 0o600))
	_, err := Start(t.Context(), &Options{DataDir: dir})
	assert.ErrorContains(t, err, "not a database")
	assert.ErrorContains(t, err, path)

	// The lock is free again.
	require.NoError(t, os.Remove(path))
	start(t, &Options{DataDir: dir})
}

// Connections can be closed as long as the server's plugin is built as it is.
func TestConnectionsAreReached(t *testing.T) {
	d, err := openDatabase(t.Context(), t.TempDir(), nil)
	require.NoError(t, err)
	require.NotNil(t, d.handle)
	d.close()
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, "late", false, nil)
	require.NoError(t, err)
	assert.ErrorContains(t, sqliteschema.CreateNamespaces(&d.cfg, ns), "database is closed")
}
