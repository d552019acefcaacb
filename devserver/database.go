package devserver

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync/atomic"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/agent"
)

// databaseName is the name of the database's file. The server never migrates a
// SQLite schema, so a file is only ever opened by the versions that made it.
const databaseName = "temporal-v" + sqliteschema.Version + "-" + sqliteschema.VisibilityVersion + ".db"

// driverName is the name under which the plugin's driver is known to database/sql.
const driverName = "sqlite"

// databases numbers the databases that this process has opened.
var databases atomic.Int64

// A database is the server's one store, for histories and for visibility.
type database struct {
	cfg    config.SQL
	handle io.Closer
}

// openDatabase makes the database if there is none, with the namespace in it.
// An empty dir means memory.
func openDatabase(ctx context.Context, dir string, o *Options) (*database, error) {
	d := &database{cfg: memoryConfig()}
	if dir != "" {
		path := filepath.Join(dir, databaseName)
		d.cfg = fileConfig(path)
		if err := createSchema(ctx, path); err != nil {
			return nil, fmt.Errorf("devserver: database %s: %w", path, err)
		}
	}
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, &d.cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return nil, fmt.Errorf("devserver: open the database: %w", err)
	}
	d.handle = connectionsOf(db)
	if err := d.createNamespace(o); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// memoryConfig describes a database that lives as long as its one connection.
func memoryConfig() config.SQL {
	return config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: "fermata-" + strconv.FormatInt(databases.Add(1), 10),
		ConnectAttributes: map[string]string{
			"mode":  "memory",
			"cache": "shared",
		},
	}
}

// fileConfig describes the database in a file. It keeps the plugin's default of
// one connection: with more, a transaction that reads before it writes fails
// with "database is locked" as soon as another one wrote in between.
func fileConfig(path string) config.SQL {
	return config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: uriPath(path),
		ConnectAttributes: map[string]string{
			"mode": "rwc",
			// Commits append to a log and do not wait for the disk. What is
			// committed outlives the process, however it ends; only the last
			// moments before a power failure may be lost, never consistency.
			"journal_mode": "wal",
			"synchronous":  "normal",
			// For whoever looks into the file with another program: wait for
			// them instead of failing.
			"busy_timeout": "5000",
			// The plugin keeps connections by their data source name for the
			// life of the process and would hand out one that close has closed.
			// SQLite ignores pragmas that it does not know.
			"fermata_start": strconv.FormatInt(databases.Add(1), 10),
		},
	}
}

// uriPath writes a file's path as SQLite reads it in a URI, where '?', '#' and
// '%' mean something.
func uriPath(path string) string {
	p := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		p = "/" + p
	}
	return (&url.URL{Path: p}).EscapedPath()
}

// createSchema lays out an empty database, in one transaction: a process that is
// killed on the way leaves a file that the next one lays out again.
func createSchema(ctx context.Context, path string) error {
	// Conversations are nobody else's. SQLite gives the files beside this one the
	// same permissions.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	db, err := stdsql.Open(driverName, "file:"+uriPath(path)+"?mode=rwc&_pragma=busy_timeout=5000")
	if err != nil {
		return err
	}
	defer db.Close()
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	if tables > 0 {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := sqliteschema.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return fmt.Errorf("%w (rollback: %v)", err, tx.Rollback())
	}
	return tx.Commit()
}

// A schemaTx is as much of an admin's database as laying out a schema takes.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *stdsql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// createNamespace writes the namespace into the database before there is a server,
// which is some hundred milliseconds sooner than asking the server for it. A
// namespace that exists is left as it is; see setup.go.
func (d *database) createNamespace(o *Options) error {
	attributes := make(map[string]enumspb.IndexedValueType)
	for _, a := range agent.Attributes() {
		attributes[a.Name] = indexedType(a)
	}
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, o.namespace(), false, attributes)
	if err != nil {
		return fmt.Errorf("devserver: namespace %q: %w", o.namespace(), err)
	}
	ns.Detail.Config.Retention = durationpb.New(o.retention())
	if err := sqliteschema.CreateNamespaces(&d.cfg, ns); err != nil {
		return fmt.Errorf("devserver: namespace %q: %w", o.namespace(), err)
	}
	return nil
}

// close closes the connection, if there is one to close. Whatever of the server is
// still running then finds that its database is closed: nothing writes to the file
// once the lock is free.
func (d *database) close() {
	if d.handle != nil {
		// The only error is the file's, and there is nobody left to use it.
		_ = d.handle.Close()
	}
}

// connectionsOf returns what closes the connections behind db. The server's plugin
// never does: closing db only counts down a reference that nothing looks at, which
// would keep the file open, and databases in memory alive, until the process ends.
// The connection pool is an unexported field, so it is taken by reflection; where a
// later server has no such field, connections stay open, as upstream has them.
func connectionsOf(db sqlplugin.DB) io.Closer {
	v := reflect.ValueOf(db)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	pool := v.Elem().FieldByName("db")
	if !pool.IsValid() || pool.Kind() != reflect.Pointer {
		return nil
	}
	closer, _ := reflect.NewAt(pool.Type().Elem(), pool.UnsafePointer()).Interface().(io.Closer)
	return closer
}
