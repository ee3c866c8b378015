{{- define "spotshift.image" -}}
{{- if ne .Release.Namespace "spotshift-system" -}}
{{- fail "spotshift is installed once per cluster, in the namespace spotshift-system: use -n spotshift-system" -}}
{{- end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}
