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

// openDatabase opens the database with the namespace in it, and creates both if they are
// missing. An empty dir means memory.
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
			// If another program reads the file, wait for it instead of failing.
			"busy_timeout": "5000",
			// The plugin keeps connections by their data source name for the
			// life of the process and would hand out one that close has closed.
			// SQLite ignores pragmas that it does not know.
			"fermata_start": strconv.FormatInt(databases.Add(1), 10),
		},
	}
}

// uriPath returns a file's path for a SQLite URI, in which '?', '#' and '%' have a
// meaning.
func uriPath(path string) string {
	p := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		p = "/" + p
	}
	return (&url.URL{Path: p}).EscapedPath()
}

// createSchema creates the tables of an empty database, in one transaction. If the
// process is killed meanwhile, the next one creates them again.
func createSchema(ctx context.Context, path string) error {
	// Conversations are private. SQLite gives the files beside this one the same
	// permissions.
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

// A schemaTx is the part of an AdminDB that creating a schema needs.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *stdsql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// createNamespace writes the namespace into the database before the server starts. That
// is some hundred milliseconds faster than asking the server for it. A namespace that
// exists stays as it is; see setup.go.
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

// close closes the connection, if there is one to close. Parts of the server that still
// run then find their database closed. So nothing writes to the file once the lock is
// free.
func (d *database) close() {
	if d.handle != nil {
		// The only error is the file's, and there is nobody left to use it.
		_ = d.handle.Close()
	}
}

// connectionsOf returns what closes the connections behind db. The server's plugin never
// closes them: closing db only decrements a counter. The file would stay open, and
// databases in memory alive, until the process ends. The connection pool is an unexported
// field, so this uses reflection. If a later server has no such field, the connections
// stay open.
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
