import { testSessionStore } from '../contract/session-store.ts';
import { createSessionFolder } from './session-folder.ts';

testSessionStore('JSONL files', async () => {
  const { open } = await createSessionFolder();
  return { store: open(), reopen: async () => open() };
});
