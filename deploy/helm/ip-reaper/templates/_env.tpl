{{/*
The name of the Secret with etcd's certificates and key, or nothing.
*/}}
{{- define "ip-reaper.etcdSecret" -}}
{{- if include "ip-reaper.etcd" . }}{{ .Values.backends.calico.etcd.secretName }}{{ end -}}
{{- end }}

{{/*
The volume with the CAs of the Pushgateway, or nothing.
*/}}
{{- define "ip-reaper.caVolume" -}}
{{- with .Values.metrics.caBundle -}}
{{- $items := list (dict "key" .key "path" "ca.crt") -}}
{{- if .configMap -}}
{{ toYaml (list (dict "name" "ca" "configMap" (dict "name" .configMap "items" $items))) }}
{{- else if .secret -}}
{{ toYaml (list (dict "name" "ca" "secret" (dict "secretName" .secret "items" $items))) }}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The environment variables of the container. Takes the same as ip-reaper.pod.
*/}}
{{- define "ip-reaper.env" -}}
{{- if include "ip-reaper.etcd" .root -}}
- name: ETCD_ENDPOINTS
  value: {{ join "," .root.Values.backends.calico.etcd.endpoints | quote }}
- name: DATASTORE_TYPE
  value: etcdv3
{{- if include "ip-reaper.etcdSecret" .root }}
- name: ETCD_CA_CERT_FILE
  value: /etc/ip-reaper-etcd/ca.crt
- name: ETCD_CERT_FILE
  value: /etc/ip-reaper-etcd/tls.crt
- name: ETCD_KEY_FILE
  value: /etc/ip-reaper-etcd/tls.key
{{- end }}
{{ end -}}
{{- if not .account.namespace }}
- name: NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}
# The journal says by this which pod made it.
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with .root.Values.goMemLimit }}
# Just below the container's memory limit: the Go runtime collects garbage more often as it comes
# close.
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- with .root.Values.metrics.pushURL }}
- name: IP_REAPER_PUSH_URL
  value: {{ . | quote }}
{{- end }}
{{- with .root.Values.metrics.pushURLSecret }}
{{- if .name }}
- name: IP_REAPER_PUSH_URL
  valueFrom:
    secretKeyRef:
      name: {{ .name | quote }}
      key: {{ .key | quote }}
{{- end }}
{{- end }}
{{- if include "ip-reaper.caVolume" .root }}
- name: SSL_CERT_FILE
  value: /etc/ip-reaper-ca/ca.crt
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
