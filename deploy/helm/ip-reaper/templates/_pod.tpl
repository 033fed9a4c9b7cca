{{/*
The pod of a Job, which satisfies Pod Security "restricted", unless it has the network of its node. Takes
the same as ip-reaper.cronjob.
*/}}
{{- define "ip-reaper.pod" -}}
{{- $values := .root.Values -}}
{{- $name := include "ip-reaper.fullname" .root -}}
restartPolicy: Never
serviceAccountName: "{{ $name }}{{ .account.suffix }}"
automountServiceAccountToken: true
enableServiceLinks: false
# After SIGTERM, a run ends its write, and says what it did in the ledger and metrics. It takes 10
# seconds at most.
terminationGracePeriodSeconds: 60
{{- $tolerations := $values.tolerations }}
{{- if .account.namespace }}
  {{- range $key := list "node-role.kubernetes.io/control-plane" "node.kubernetes.io/network-unavailable" "node.kubernetes.io/memory-pressure" }}
    {{- $tolerations = append $tolerations (dict "key" $key "operator" "Exists" "effect" "NoSchedule") }}
  {{- end }}
{{- end }}
{{- with $tolerations }}
# A taint "not-ready" or "unreachable" should not be among them: the scheduler prefers empty nodes, and that
# of an outage is empty.
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- $services := "" }}
{{- if .account.hostNetwork }}
# A pod that frees addresses must not wait for one.
hostNetwork: true
{{- $services = ternary "" "ClusterFirstWithHostNet" (hasKey .account "namespace") }}
{{- end }}
{{- with $values.dnsPolicy | default $services }}
dnsPolicy: {{ . | quote }}
{{- end }}
{{- range $field := list "imagePullSecrets" "nodeSelector" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $values $field }}
{{ toYaml (dict $field .) }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- if not (include "ip-reaper.openshift" .root) }}
  runAsUser: 65532
  runAsGroup: 65532
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
containers:
- name: ip-reaper
  image: {{ include "ip-reaper.image" .root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy | quote }}
  args:
  - run
  {{- if .account.namespace }}
  # Without --policy, it takes the installed policy of this namespace.
  - "--state-namespace={{ .root.Release.Namespace }}"
  {{- else }}
  - --policy=/etc/ip-reaper/policy.yaml
  - --state-namespace=$(NAMESPACE)
  {{- end }}
  - {{ printf "--timeout=%s" $values.timeout | quote }}
  {{- range .args }}
  - {{ . | quote }}
  {{- end }}
  env:
  {{- include "ip-reaper.env" . | nindent 2 }}
  {{- with $values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  # The run writes its summary to the termination message. If it cannot, the end of its log is
  # used.
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  {{- if include "ip-reaper.caVolume" .root }}
  - name: ca
    mountPath: /etc/ip-reaper-ca
    readOnly: true
  {{- end }}
  {{- if include "ip-reaper.etcdSecret" .root }}
  - name: etcd
    mountPath: /etc/ip-reaper-etcd
    readOnly: true
  {{- end }}
  {{- if not .account.namespace }}
  - name: policy
    mountPath: /etc/ip-reaper
    readOnly: true
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
{{- with include "ip-reaper.caVolume" .root }}
{{ . }}
{{- end }}
{{- with include "ip-reaper.etcdSecret" .root }}
- name: etcd
  secret:
    secretName: {{ . | quote }}
{{- end }}
{{- if not .account.namespace }}
- name: policy
  configMap:
    name: ip-reaper-policy
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
