package ship_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// phrases are those by which the threat model tells of the verbs of each resource that a
// shipped role has.
var phrases = map[string][]struct {
	verbs  []string
	phrase string
}{
	"pods":                    {{[]string{"get", "list"}, "list the pods, StatefulSets, nodes"}},
	"statefulsets":            {{[]string{"list"}, "list the pods, StatefulSets, nodes"}},
	"nodes":                   {{[]string{"list"}, "list the pods, StatefulSets, nodes"}},
	"virtualmachineinstances": {{[]string{"list"}, "KubeVirt's virtual machine instances of the whole cluster"}},
	"events":                  {{[]string{"create"}, "create events in every namespace"}},
	"ippools": {
		{[]string{"get", "list"}, "list pools,"},
		{[]string{"patch"}, "remove any allocation from any pool"},
	},
	"nodeslicepools": {{[]string{"list"}, "list pools, node slices,"}},
	"overlappingrangeipreservations": {
		{[]string{"get", "list"}, "list pools, node slices, reservations,"},
		{[]string{"patch", "delete"}, "mark and then delete any overlapping reservation"},
		{[]string{"create"}, "create overlapping reservations and handles"},
	},
	"network-attachment-definitions": {{[]string{"list"}, "network attachments, IPAMClaims"}},
	"ipamclaims":                     {{[]string{"list"}, "IPAMClaims and IPReservations"}},
	"ipamblocks": {
		{[]string{"get", "list"}, "blocks, handles,"},
		{[]string{"update"}, "free any address of any block"},
	},
	"ipamhandles": {
		{[]string{"get", "list"}, "blocks, handles,"},
		{[]string{"update", "delete"}, "count down or delete any handle"},
		{[]string{"create"}, "create overlapping reservations and handles"},
	},
	"ipreservations":            {{[]string{"list"}, "IPAMClaims and IPReservations"}},
	"clusterinformations":       {{[]string{"get"}, "Calico's ClusterInformation"}},
	"datastoremigrations":       {{[]string{"list"}, "its migrations"}},
	"customresourcedefinitions": {{[]string{"get"}, "seven definitions of custom resources"}},
	"configmaps": {
		{[]string{"get", "update"}, "read and write the ledger"},
		{[]string{"list", "create", "delete"}, "read all ConfigMaps, write the ledger, and create and delete journals"},
	},
	"leases": {{[]string{"get", "create", "update"}, "take the lease"}},
}

// What a stolen token can do is in the threat model: all of it.
func TestThreatModelTellsOfEveryRight(t *testing.T) {
	told := strings.Join(strings.Fields(chapter(t, "Threat model")), " ")
	files, err := filepath.Glob(filepath.Join(root(t), "deploy", "kustomize", "components", "*", "*.yaml"))
	must(t, err)
	rights := 0
	for _, file := range files {
		for _, rule := range rules(t, file) {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights++
					if !tells(told, resource, verb) {
						t.Errorf("%s: the threat model does not tell of the right to %s %s", file, verb, resource)
					}
				}
			}
		}
	}
	if rights < 30 {
		t.Errorf("only %d rights found", rights)
	}
}

// tells reports whether the chapter says what the verb on the resource allows.
func tells(chapter, resource, verb string) bool {
	for _, one := range phrases[resource] {
		if slices.Contains(one.verbs, verb) {
			return strings.Contains(chapter, one.phrase)
		}
	}
	return false
}

// rules are those of all roles of a file; none where it has no role.
func rules(t testing.TB, file string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var all []rbacv1.PolicyRule
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var role rbacv1.ClusterRole
		switch err := docs.Decode(&role); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, role.Rules...)
	}
}
