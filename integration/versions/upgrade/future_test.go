package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// journalKey is where a ConfigMap has a part of a journal.
const journalKey = "journal.json.gz"

// futurePolicy has a protection that no version of today knows.
var futurePolicy = terms(0, 0, 0) + "protection: {deployments: keep}\n"

// A state is all that a program may change.
type state struct {
	Stores     map[string]string
	ConfigMaps []corev1.ConfigMap
}

func (s *scene) state() state {
	s.Helper()
	return state{s.stores().Bytes(), s.configMaps()}
}

// wantState fails the test unless nothing was written.
func (s *scene) wantState(want state) {
	s.Helper()
	if diff := cmp.Diff(want, s.state()); diff != "" {
		s.Errorf("it has written (-want +got):\n%s", diff)
	}
}

// refuses fails the test unless a program refuses a policy.
func (s *scene) refuses(p program, policy string) {
	s.Helper()
	result := s.end(s.start(p, "run", policy), reap.ExitUsage)
	if !strings.Contains(result.Stderr, "unknown field") && !strings.Contains(result.Stderr, "apiVersion: Unsupported value") {
		s.Errorf("it does not say what it does not know:\n%s", result.Stderr)
	}
}

// Promises 2 and 6. A later version has changed the form of something. This version says so
// and writes nothing, or keeps what it does not know.
func TestFormOfALaterVersion(t *testing.T) {
	r := recordings(t)[0]
	now := current(t)
	due := terms(0, 0, 0)
	laterLedger := func(name string) func([]corev1.ConfigMap) {
		return func(all []corev1.ConfigMap) {
			edit(t, ledgerMap(all, name), memory.LedgerKey, func(plain []byte) []byte {
				body := plain[:len(plain)-crc32.Size]
				body[0]++
				return binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
			})
		}
	}
	inJournal := func(old, later string) func([]corev1.ConfigMap) {
		return func(all []corev1.ConfigMap) {
			for i := range all {
				if all[i].BinaryData[journalKey] != nil {
					edit(t, &all[i], journalKey, func(plain []byte) []byte {
						if !bytes.Contains(plain, []byte(old)) {
							t.Fatalf("the journal has no %s", old)
						}
						return bytes.ReplaceAll(plain, []byte(old), []byte(later))
					})
				}
			}
		}
	}
	// runs wants a run to release nothing, to write nothing, and to say why.
	runs := func(s *scene, l legacy, says string) {
		s.setLease(l.Free)
		before := s.state()
		r := s.run(now, reap.ExitPartial, due)
		if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, says) {
			s.Errorf("warnings %q, want %q", got, says)
		}
		s.wantState(before)
	}
	// restores wants a restore to exit with the code, and to say something.
	restores := func(s *scene, l legacy, code int, says string) {
		s.setLease(l.Free)
		result := s.end(s.start(now, "restore", terms(0, day, day), "--run="+l.Run), code)
		if text := result.Stdout + result.Stderr; !strings.Contains(text, says) {
			s.Errorf("it does not say %q:\n%s", says, text)
		}
	}
	for _, tt := range []struct {
		name, form string
		change     func([]corev1.ConfigMap)
		want       func(*scene, legacy)
	}{
		{"ledger", small, laterLedger(memory.LedgerName), func(s *scene, l legacy) {
			runs(s, l, "a newer ip-reaper wrote the ledger")
			before := s.configMaps()
			restores(s, l, reap.ExitDone, "the next run may release the allocations again")
			snapshot.WantT(s, "after the restore", s.before, s.stores().Bytes())
			if diff := cmp.Diff(before, s.configMaps()); diff != "" {
				s.Errorf("ConfigMaps (-want +got):\n%s", diff)
			}
		}},
		{"one shard of the ledger", sharded, laterLedger(memory.LedgerName + "-17"), func(s *scene, l legacy) {
			runs(s, l, "ConfigMap ip-reaper-ledger-17: a newer ip-reaper wrote the ledger")
		}},
		{"more shards of the ledger", sharded, func(all []corev1.ConfigMap) { ledgerMap(all, memory.LedgerName).Data["shards"] = "64" }, func(s *scene, l legacy) {
			runs(s, l, "a newer ip-reaper wrote the ledger")
		}},
		{"more keys of the ledger", small, func(all []corev1.ConfigMap) {
			cm := ledgerMap(all, memory.LedgerName)
			cm.Data["hint"], cm.BinaryData["index.zst"] = "of a later version", []byte("later")
		}, func(s *scene, l legacy) {
			s.setLease(l.Free)
			s.wantPlaces("held", l.Held, s.run(now, reap.ExitDone, terms(0, 0, day)).where(restored))
			if cm := ledgerMap(s.configMaps(), memory.LedgerName); cm.Data["hint"] == "" || string(cm.BinaryData["index.zst"]) != "later" {
				s.Errorf("the ledger lost keys: %v", cm.Data)
			}
		}},
		{"journal", small, inJournal(`"version":1,"run"`, `"version":2,"run"`), func(s *scene, l legacy) {
			before := s.state()
			restores(s, l, reap.ExitPartial, "the part has version 2, this program reads 1: use the newer ip-reaper")
			s.wantState(before)
			told := historyOf(s, s.end(s.start(now, "history", due), reap.ExitDone))
			if len(told.Runs) > 0 || len(told.Warnings) != 1 || !strings.Contains(told.Warnings[0], "use the newer ip-reaper") {
				s.Errorf("a history of %d runs, with warnings %q", len(told.Runs), told.Warnings)
			}
			r := s.run(now, reap.ExitDone, strings.Replace(due, "keep: 100", "keep: 1, keepFor: 0s", 1)) // it prunes
			if r.Summary.Released == 0 {
				s.Error("nothing was released, so that nothing was pruned")
			}
			for _, cm := range before.ConfigMaps {
				if !isLedger(cm) && !slices.ContainsFunc(s.configMaps(), func(now corev1.ConfigMap) bool { return cmp.Equal(cm, now) }) {
					s.Errorf("a run removed %s", cm.Name)
				}
			}
		}},
		{"more fields of the journal", small, inJournal(`"version":1,"run":{`, `"version":1,"later":{"a":1},"run":{"later":"x",`), func(s *scene, l legacy) {
			restores(s, l, reap.ExitDone, "")
			snapshot.WantT(s, "after the restore", s.before, s.stores().Bytes())
		}},
		{"more fields of what Calico's store recorded", small, inJournal(`"stored":{`, `"stored":{"later":1,`), func(s *scene, l legacy) {
			before := snapshot.TakeT(s, s.Cluster, nil, snapshot.Blocks, snapshot.Handles).Bytes()
			restores(s, l, reap.ExitPartial, "unknown field")
			snapshot.WantT(s, "after the restore", before, snapshot.TakeT(s, s.Cluster, nil, snapshot.Blocks, snapshot.Handles).Bytes())
		}},
		{"more fields of the policy", small, nil, func(s *scene, l legacy) {
			s.setLease(l.Free)
			before := s.state()
			s.refuses(now, futurePolicy)
			s.refuses(now, strings.Replace(due, "ip-reaper/v1alpha1", "ip-reaper/v1beta1", 1))
			s.wantState(before)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := replay(t, r, tt.form)
			if tt.change != nil {
				tt.change(l.ConfigMaps)
				s.setConfigMaps(l.ConfigMaps)
			}
			tt.want(s, l)
		})
	}
}

// ledgerMap returns the ConfigMap of that name.
func ledgerMap(all []corev1.ConfigMap, name string) *corev1.ConfigMap {
	i := slices.IndexFunc(all, func(cm corev1.ConfigMap) bool { return cm.Name == name })
	return &all[i]
}

// edit changes what is compressed under a key.
func edit(t testing.TB, cm *corev1.ConfigMap, key string, change func([]byte) []byte) {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(cm.BinaryData[key]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	cm.BinaryData[key] = memory.Zip(change(plain))
}
