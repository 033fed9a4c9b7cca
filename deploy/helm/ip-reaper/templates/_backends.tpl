{{/*
The allocations in Whereabouts' IPPools. Takes release, as those below do.
*/}}
{{- define "ip-reaper.rules.whereabouts" -}}
# A release takes entries out of a pool by patch; a pool is never deleted.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [ippools]
  verbs: {{ ternary "[get, list, patch]" "[list]" .release }}
# Which addresses do networks exclude?
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [list]
{{- end }}

{{/*
Whereabouts' OverlappingRangeIPReservations.
*/}}
{{- define "ip-reaper.rules.overlapping" -}}
# A release marks a reservation by patch, then deletes it.
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [overlappingrangeipreservations]
  verbs: {{ ternary "[get, list, patch, delete]" "[list]" .release }}
# Does a pool still hold the address?
- apiGroups: [whereabouts.cni.cncf.io]
  resources: [ippools]
  verbs: [list]
# Which addresses do networks exclude?
- apiGroups: [k8s.cni.cncf.io]
  resources: [network-attachment-definitions]
  verbs: [list]
{{- end }}

{{/*
Calico's IPAM, where its data is in the Kubernetes API.
*/}}
{{- define "ip-reaper.rules.calico" -}}
# What of Calico is installed, and in which API group? Only definitions tell for
# sure what there is not: IPReservations are missing from old Calicos, and
# migrations from most.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
  - ipamblocks.crd.projectcalico.org
  - ipamblocks.projectcalico.org
  - ipreservations.crd.projectcalico.org
  - ipreservations.projectcalico.org
  - datastoremigrations.migration.projectcalico.org
  verbs: [get]
# Is the datastore locked, or its data on the move to another API group?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [clusterinformations]
  resourceNames: [default]
  verbs: [get]
- apiGroups: [migration.projectcalico.org]
  resources: [datastoremigrations]
  verbs: [list]
# Which addresses are kept back?
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipreservations]
  verbs: [list]
{{- if .release }}
# Addresses are taken out of a block by update; a block is never deleted.
- apiGroups: [crd.projectcalico.org, projectcalico.org]
  resources: [ipamblocks]
  verbs: [get, list, update]
# A handle without an address is deleted, as Calico does it.
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
