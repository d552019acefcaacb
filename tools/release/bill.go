package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes which modules a binary is made of, as the binary itself says.
func (r *release) writeBill(binary, bill string) error {
	path := filepath.Join(r.out, binary)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	sum, err := digest(path)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, bill))
	if err != nil {
		return err
	}
	defer file.Close()
	bom := billOf(info, sum, r.date)
	if err := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return err
	}
	return file.Close()
}

// billOf returns the bill of materials of a binary with this digest. It is always the
// same for the same binary and date.
func billOf(info *debug.BuildInfo, sum [32]byte, date time.Time) *cdx.BOM {
	program := component(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	var settings []cdx.Property
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	program.Properties = &settings

	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		part := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		// The digest of go.sum: over the names and digests of the module's files.
		part.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(raw) == sha256.Size {
			part.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
		parts = append(parts, part)
	}
	var within []string
	for _, p := range parts {
		within = append(within, p.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + serial(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: date.Format(time.RFC3339), Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &within}}
	return bom
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	name := "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
	return cdx.Component{BOMRef: name, Type: kind, Name: path, Version: version, PackageURL: name}
}

// serial returns a UUID of version 8 made of a digest.
func serial(sum [32]byte) string {
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
