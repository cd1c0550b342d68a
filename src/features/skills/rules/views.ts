// What the HTTP API answers about skills; the page has its types from here.

import { z } from 'zod';

export const shownSkill = z.object({
  name: z.string(),
  description: z.string(),
  origin: z.enum(['workspace', 'shipped']),
  source: z.string().exactOptional().describe('Where an added skill came from.'),
  isAlways: z.boolean().describe('In every prompt.'),
  state: z.enum(['ready', 'lacking', 'changed', 'broken', 'off']),
  problem: z.string().exactOptional().describe('What is missing or broken.'),
});
export const skillList = z.object({ skills: z.array(shownSkill) });
export const skillText = z.object({ text: z.string(), others: z.array(z.string()) });
export const skillReview = z.object({
  name: z.string(),
  description: z.string(),
  source: z.string(),
  text: z.string(),
  files: z.array(z.object({ path: z.string(), bytes: z.number() })),
  remarks: z.array(z.string()).describe('Its requirements and what deserves attention.'),
  version: z.string().describe('Sent with the request that adds it: what was reviewed is added.'),
  isThere: z.boolean().describe('The workspace has a skill of this name, which would be replaced.'),
});

export type ShownSkill = z.infer<typeof shownSkill>;
export type SkillList = z.infer<typeof skillList>;
export type SkillText = z.infer<typeof skillText>;
export type SkillReview = z.infer<typeof skillReview>;
