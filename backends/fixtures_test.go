package backends_test

import (
	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// known are the backends of the program.
var known = plugin.Known(backends.All())

// fullPolicy has every field, each with a value other than its default.
const fullPolicy = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n" + `
dryRun: false
gracePeriod: 1h30m
minAge: 1m
namespaces: {include: [team-*], exclude: [team-a]}
rules:
- match: {namespaces: ["db-*"], pods: ["pg-[0-9]"], backends: [whereabouts, "over*"], pools: ["small-*", 10.0.0.0/8], nodes: [edge-1]}
  gracePeriod: 24h
  minAge: 1.5s
  hold: true
  restored: release
backends:
  azurecns:
    enabled: true
    address: https://10.0.0.4:10091
    tls: {caFile: /etc/cns/ca.pem, certFile: /etc/cns/client.pem, keyFile: /etc/cns/client.key}
  calico:
    enabled: auto
    datastore: etcdv3
  hostlocal:
    enabled: auto
    dataDirs: [/a]
    confDir: /b
    cacheDir: /c
    binDirs: [/d]
    networks: [e]
  overlapping: {enabled: false}
  reservedIPs:
    enabled: auto
    resources:
    - resource: {group: network.example.com, version: v1alpha1, resource: reservedips}
      address: "{.spec.ips[*]}"
      pod: .spec.podName
      namespace: .spec.podNamespace
      ttl: .spec.ttl
      deletedAt: .status.deletedAt
  whereabouts: {enabled: true, unknownFields: ignore}
evidence: {annotations: own}
pods: {finished: release, stuck: release, superseded: hold, unnamed: release}
nodes: {unreachable: release, unknown: release, foreign: release}
limits: {maxReleases: 100, maxFraction: 1, maxPodDrop: 0.25, minEntries: 0}
protection:
  statefulSets: ignore
journal: {keep: 3, keepFor: 36h, restoreHold: 2h}
`
