// What people type most, below the help of a command. A test parses every line.

/** Behind the command, as it is typed. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'nanobot onboard': [
    '',
    '--model anthropic/claude-sonnet-5-5 --api-key sk-ant-...',
    '--yes --model local/qwen3 --api-base http://192.168.1.5:8000/v1',
    '--yes --telegram 123456:ABC-DEF --pair-wait 120',
  ],
  'nanobot import': ['~/.openclaw --dry-run', '~/.nanobot-python'],
  'nanobot gateway': ['', '--port 8080'],
  'nanobot agent': ['', '-m "What is on my list today?"', '-m - -s work < question.txt'],
  'nanobot doctor': ['', '--live', '--fix'],
  'nanobot usage': ['--days 7'],
  'nanobot channels login': ['telegram', 'whatsapp'],
  'nanobot pair approve': ['telegram 123456789'],
  'nanobot people set': ['ann --language de --timezone Europe/Berlin', 'ann --messages-per-day 50'],
  'nanobot cron add': [
    '"Tell me the weather" --cron "0 7 * * 1-5"',
    '"Call the dentist" --at "in 20m" --say',
  ],
  'nanobot sessions': [
    'list',
    'search invoice march',
    'export telegram:42 --format jsonl > chat.jsonl',
  ],
  'nanobot sessions purge': ['--older-than 90d'],
  'nanobot skills add': ['./my-skill', 'https://example.org/skill.zip'],
  'nanobot trace': ['last'],
  'nanobot replay': ['telegram:42 --turn last --model openai/gpt-6-sol'],
  'nanobot tune': ['', '--apply'],
  'nanobot eval': ['haystack --model ollama/qwen3:8b', 'report --html report.html'],
  'nanobot config': [
    'set agents.defaults.model openai/gpt-6-sol',
    'set providers.openai.apiKey \'{"env": "OPENAI_API_KEY"}\'',
    'validate',
  ],
};
