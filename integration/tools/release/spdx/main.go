// Command spdx writes an SPDX document of what a program links:
// spdx DOCUMENT LICENCES VERSION PROGRAM
//
// LICENCES is what the command notices writes. The same program makes the same bytes: the
// time is SOURCE_DATE_EPOCH, and the hash of the program makes the document's name unique.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const unknown = "NOASSERTION"

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "spdx:", err)
		os.Exit(1)
	}
}

func run(args []string, epoch string) error {
	if len(args) != 4 {
		return errors.New("usage: spdx DOCUMENT LICENCES VERSION PROGRAM")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	licences := map[string]string{}
	if err := json.Unmarshal(text, &licences); err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".spdx.json")
	doc, err := document(name, args[2], args[3], licences)
	if err != nil {
		return err
	}
	doc.CreationInfo.Created = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	file, err := os.Create(args[0])
	if err != nil {
		return err
	}
	return errors.Join(spdxjson.Write(doc, file, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)), file.Close())
}

// document describes the program, and the modules that it says are in it.
func document(name, version, program string, licences map[string]string) (*spdx.Document, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	main := module(info.Main.Path, version, "Apache-2.0")
	main.PrimaryPackagePurpose = "APPLICATION"
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + digest,
		CreationInfo: &spdx.CreationInfo{Creators: []common.Creator{
			{CreatorType: "Organization", Creator: "ip-reaper"}, {CreatorType: "Tool", Creator: "ip-reaper-make-release"},
		}},
		Packages: []*spdx.Package{main},
		Relationships: []*spdx.Relationship{
			relationship("DOCUMENT", common.TypeRelationshipDescribe, main.PackageSPDXIdentifier),
		},
	}
	add := func(path, version string) error {
		licence, known := licences[path+" "+version]
		if !known {
			return fmt.Errorf("%s: there is no licence of %s %s", program, path, version)
		}
		p := module(path, version, licence)
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships,
			relationship(main.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, p.PackageSPDXIdentifier))
		return nil
	}
	errs := []error{add("std", info.GoVersion)}
	for _, dep := range info.Deps {
		errs = append(errs, add(dep.Path, dep.Version))
	}
	return doc, errors.Join(errs...)
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// module returns a package of SPDX with what is known of a module.
func module(path, version, licence string) *spdx.Package {
	return &spdx.Package{
		PackageName:             path,
		PackageSPDXIdentifier:   common.ElementID("Module-" + notInID.ReplaceAllString(path+"-"+version, "-")),
		PackageVersion:          version,
		PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown,
		PackageLicenseDeclared:  licence,
		PackageCopyrightText:    unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
		}},
	}
}

func relationship(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to},
	}
}
