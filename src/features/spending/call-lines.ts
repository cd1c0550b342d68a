// The model calls in the metrics files, as far as they are read again.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { systemCode } from '../../lib/files/files.ts';
import { jsonRow, number, text } from '../../lib/json/json.ts';

const LINE = z.looseObject({
  ...{ timestamp: text, role: text, model: text, status: text, elapsed_ms: number },
  ...{ request_id: text.optional(), session: text.optional(), waited_ms: number.optional() },
  ...{ prompt_tokens: number.optional(), cached_tokens: number.optional() },
  ...{ written_tokens: number.optional(), completion_tokens: number.optional() },
  ...{ prompt_tokens_estimated: number.optional(), completion_tokens_estimated: number.optional() },
});

export type CallLine = z.infer<typeof LINE>;

/** As the ledgers count it: estimates where the vendor named no usage. */
export const usageIn = (call: CallLine) => ({
  input: call.prompt_tokens ?? call.prompt_tokens_estimated ?? 0,
  output: call.completion_tokens ?? call.completion_tokens_estimated ?? 0,
  cached: call.cached_tokens ?? 0,
  written: call.written_tokens ?? 0,
});

/** Undefined where the line is cut off or of something else. */
export const callLine = (line: string): CallLine | undefined => jsonRow(line, LINE);

/** Oldest first; `having`: only lines with these words. */
export async function* callLines(metrics: string, having = ''): AsyncGenerator<CallLine> {
  for (const file of [`${metrics}.1`, metrics]) {
    try {
      for await (const line of createInterface({ input: createReadStream(file) })) {
        const call = line.includes(having) ? callLine(line) : undefined;
        if (call !== undefined) yield call;
      }
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  }
}
