mkdir -p "$HOME/.codex"
cat > "$HOME/.codex/config.toml" <<END
model = "any"
model_provider = "here"
[model_providers.here]
name = "here"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[mcp_servers.quintain]
url = "$QUINTAIN_MCP_URL"
END
exec "$1" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "$2"
