package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/agent"
)

const (
	// readyPatience limits the wait for a server that was started.
	readyPatience = 30 * time.Second

	// readyInterval is the pause between two tries.
	readyInterval = 2 * time.Millisecond

	// readyID is the id of a workflow that does not exist.
	readyID = "fermata-ready"
)

// silence stops the SDK from logging that it has no logger.
var silence = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// A setup makes a server that was just started or found ready for runs. Every step may be
// repeated.
type setup struct {
	client    client.Client
	namespace string
	retention time.Duration
	owned     bool // ours, so it may be configured; a shared one is only completed
}

// prepare runs all steps, each until it succeeds.
func prepare(ctx context.Context, s *Server, o *Options) error {
	c, err := client.NewLazyClient(client.Options{HostPort: s.addr, Namespace: s.namespace, Logger: silence, ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{s.owner.pass()}}})
	if err != nil {
		return fmt.Errorf("devserver: dial %s: %w", s.addr, err)
	}
	defer c.Close()
	p := &setup{client: c, namespace: s.namespace, retention: o.retention(), owned: !s.shared}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"namespace", p.ensureNamespace},
		{"search attributes", p.ensureAttributes},
		{"visibility", p.tryVisibility},
		{"history", p.tryHistory},
	} {
		if err := until(ctx, p.unlessGone(step.run)); err != nil {
			return fmt.Errorf("devserver: %s of the server at %s: %w", step.name, s.addr, err)
		}
	}
	return nil
}

// until calls try until it succeeds, fails for good, or ctx ends.
func until(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil || errors.As(err, new(*refusal)) {
			return err
		}
		select {
		case <-time.After(readyInterval):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// A refusal is an error that a retry does not cure.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// errGone means that a server that was found has stopped since.
var errGone = errors.New("the server is gone")

// unlessGone makes an unreachable shared server a refusal. It has answered before, so it
// is not just starting.
func (p *setup) unlessGone(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := step(ctx)
		if !p.owned && errors.As(err, new(*serviceerror.Unavailable)) {
			return &refusal{fmt.Errorf("%w: %w", errGone, err)}
		}
		return err
	}
}

// ensureNamespace creates a missing namespace, which can only be missing on a shared
// server. It sets the retention if the server is ours.
func (p *setup) ensureNamespace(ctx context.Context) error {
	svc := p.client.WorkflowService()
	ns, err := svc.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: p.namespace})
	if errors.As(err, new(*serviceerror.NamespaceNotFound)) && !p.owned {
		_, err = svc.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        p.namespace,
			WorkflowExecutionRetentionPeriod: durationpb.New(p.retention),
		})
		if errors.As(err, new(*serviceerror.NamespaceAlreadyExists)) {
			return nil // another process that shares the server created it
		}
		return err
	}
	if err != nil {
		return err
	}
	has := ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if !p.owned || has == p.retention {
		return nil
	}
	_, err = svc.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: p.namespace,
		Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(p.retention)},
	})
	return err
}

// ensureAttributes adds the search attributes that the namespace lacks. A namespace of an
// older version of ours lacks the newer ones.
func (p *setup) ensureAttributes(ctx context.Context) error {
	svc := p.client.OperatorService()
	known, err := svc.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: p.namespace})
	if err != nil {
		return err
	}
	missing := make(map[string]enumspb.IndexedValueType)
	for _, a := range agent.Attributes() {
		want := indexedType(a)
		switch has := known.GetCustomAttributes()[a.Name]; has {
		case want:
		case enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED:
			missing[a.Name] = want
		default:
			return &refusal{fmt.Errorf("%s is a %v in namespace %q, but must be a %v", a.Name, has, p.namespace, want)}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = svc.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace:        p.namespace,
		SearchAttributes: missing,
	})
	return err
}

// tryVisibility sends a query that is valid once all search attributes are.
func (p *setup) tryVisibility(ctx context.Context) error {
	query := fmt.Sprintf("WorkflowId = '%s'", readyID)
	for _, a := range agent.Attributes() {
		query += " AND " + a.Name + " IS NULL"
	}
	_, err := p.client.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: p.namespace,
		Query:     query,
	})
	return err
}

// tryHistory asks for a workflow that does not exist. Only a history service that
// owns its shard knows that, and then it can also start one.
func (p *setup) tryHistory(ctx context.Context) error {
	_, err := p.client.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: p.namespace,
		Execution: &common.WorkflowExecution{WorkflowId: readyID},
	})
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil
	}
	return err
}

// indexedType returns the server's number for an attribute's type. Our names of types are
// the server's.
func indexedType(a agent.Attribute) enumspb.IndexedValueType {
	t, err := enumspb.IndexedValueTypeFromString(string(a.Type))
	if err != nil {
		panic(fmt.Sprintf("devserver: search attribute %s: %v", a.Name, err))
	}
	return t
}
