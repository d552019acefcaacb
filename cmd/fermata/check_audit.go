package main

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/auditor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// checkAudit looks whether workers could add to the audit, and adds nothing.
func (d *doctor) checkAudit() {
	path, key, err := env.AuditPlace()
	if err == nil && path != "" {
		err = audit.Check(path, key)
	}
	switch {
	case agent.CodeOf(err) == agent.CodeNotWritten:
		d.failed("audit", err, auditor.AuditRemedy)
	case err != nil:
		d.failed("audit", err, "")
	case path != "":
		d.found("audit", verdictOK, path, "")
	}
}
