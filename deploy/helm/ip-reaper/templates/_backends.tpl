{{/*
The rules for Whereabouts' IPPools. They, and the templates below, take release.
*/}}
{{- define "ip-reaper.rules.whereabouts" -}}
# A release patches an IPPool, and never deletes one.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [ippools]
  verbs: {{ ternary "[get, list, patch]" "[list]" .release }}
# Which slices do nodes have? Without this right, a report says that it is unknown.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [nodeslicepools]
  verbs: [list]
# Which addresses do network attachments exclude?
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [list]
# Which addresses belong to a virtual machine that is stopped?
- apiGroups: [k8s.cni.cncf.io]
  resources: [ipamclaims]
  verbs: [list]
{{- end }}

{{/*
The rules for Whereabouts' OverlappingRangeIPReservations.
*/}}
{{- define "ip-reaper.rules.overlapping" -}}
# A release first patches an overlapping reservation, and then deletes it.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [overlappingrangeipreservations]
  verbs: {{ ternary "[get, list, patch, delete]" "[list]" .release }}
# Does a pool still hold the address?
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [ippools]
  verbs: [list]
# Which addresses do network attachments exclude?
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [list]
# Which addresses belong to a virtual machine that is stopped?
- apiGroups: [k8s.cni.cncf.io]
  resources: [ipamclaims]
  verbs: [list]
{{- end }}

{{/*
The rules to read what Calico's IPAM says of its data.
*/}}
{{- define "ip-reaper.rules.calicoReads" -}}
# Which of Calico's resources exist, and in which API group? Only a missing
# definition proves that a resource does not exist. Old versions of Calico have no
# IPReservations, and most have no migrations.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
  - ipamblocks.crd.projectcalico.org
  - ipamblocks.projectcalico.org
  - ipreservations.crd.projectcalico.org
  - ipreservations.projectcalico.org
  - ippools.crd.projectcalico.org
  - ippools.projectcalico.org
  - datastoremigrations.migration.projectcalico.org
  verbs: [get]
# Is the datastore locked, or do its data move to another API group?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [clusterinformations]
  resourceNames: [default]
  verbs: [get]
- apiGroups: [migration.projectcalico.org]
  resources: [datastoremigrations]
  verbs: [list]
# Which addresses do IPReservations protect?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipreservations]
  verbs: [list]
{{- end }}

{{/*
The rules for Calico's IPAM, if its data are in the Kubernetes API.
*/}}
{{- define "ip-reaper.rules.calico" -}}
{{ include "ip-reaper.rules.calicoReads" . }}
# Which addresses can pods get? Without this right, a report says that it is unknown.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ippools]
  verbs: [list]
{{- if .release }}
# A release updates a block, and never deletes one.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamblocks]
  verbs: [get, list, update]
# A release deletes a handle without an address, as Calico does.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamhandles]
  verbs: [get, list, update, delete]
{{- else }}
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamblocks, ipamhandles]
  verbs: [list]
{{- end }}
{{- end }}

{{/*
What backends.reservedIPs.resources names. Takes root and release.
*/}}
{{- define "ip-reaper.rules.reservedIPs" -}}
{{- range $i, $reserved := .root.Values.backends.reservedIPs.resources }}
{{- if $i }}
{{ end -}}
- apiGroups: [{{ .resource.group }}]
  resources: [{{ .resource.resource }}]
  verbs: {{ ternary "[list, delete]" "[list]" (and $.release (.deleteExpired | default false)) }}
{{- end }}
{{- end }}
