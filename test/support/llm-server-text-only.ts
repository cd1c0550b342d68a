// A server whose model knows no tools and whose chat template takes messages of person and model by
// turns only: what such servers refuse is refused, in their words.

import { type Json, list, object, refuseUnless } from './llm-server-strict.ts';

export function refuseTools(body: Json): void {
  const model = String(body['model']);
  const asksForTools = ['tools', 'tool_choice'].some((key) => body[key] !== undefined);
  refuseUnless(!asksForTools, `registry.ollama.ai/library/${model} does not support tools`);
  const messages = list(body['messages'], 'messages').map((item) => object(item, 'message'));
  const hasTools = messages.some(({ role, tool_calls: calls }) => role === 'tool' || calls);
  refuseUnless(!hasTools, 'Only user, assistant and system roles are supported!');
}

export function refuseUnevenTurns(body: Json): void {
  const roles = list(body['messages'], 'messages')
    .map((item) => object(item, 'message')['role'])
    .filter((role) => role !== 'system');
  const takeTurns = roles.every((role, at) => role === (at % 2 === 0 ? 'user' : 'assistant'));
  const message = 'Conversation roles must alternate user/assistant/user/assistant/...';
  refuseUnless(takeTurns && roles.at(-1) === 'user', message);
}
