// Answers as small models really write them when they go astray: passages that follow themselves until
// somebody stops them, in six languages, in words, lists, code and tables.

import { essayIn } from './good-corpus.ts';

const TONGUES = ['en', 'de', 'fr', 'es', 'it', 'pt'];
const F = '```';
const sentencesOf = (tongue: string) => essayIn(tongue).split(/(?<=\.) /);
const first = (tongue: string) => sentencesOf(tongue)[0] ?? '';

export const ENDLESS: readonly string[] = [
  ...TONGUES.flatMap((tongue) => [
    `${first(tongue)} `.repeat(60),
    `${essayIn(tongue)}\n\n${`${first(tongue)}\n`.repeat(60)}`,
    `${sentencesOf(tongue).slice(0, 3).join('\n')}\n\n`.repeat(60),
    `- ${first(tongue)}\n`.repeat(80),
  ]),
  'the '.repeat(500),
  'I am sorry. '.repeat(200),
  '\n\nAssistant: How can I help?\n\nUser: Hi\n'.repeat(60),
  'haha'.repeat(600),
  '!'.repeat(20_000),
  '我很抱歉，我不能回答这个问题。'.repeat(120),
  'すみません。'.repeat(300),
  `Here:\n\n${F}python\n${'print("hello, world")\n'.repeat(900)}`,
  `| a | b |\n|---|---|\n${'| one more row | of the same |\n'.repeat(600)}`,
];
