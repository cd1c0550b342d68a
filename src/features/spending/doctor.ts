// Whether the doctor knows what the models that may answer cost.

import { type Finding, ok, warn } from '../../cli/doctor/finding.ts';
import type { Terminal } from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import { findDefaultModel } from '../../providers/credentials.ts';
import { assumedPrice, priceOf } from '../../providers/rules/model-names.ts';

export async function checkPrices({ env }: Terminal, config: Config): Promise<Finding> {
  const { budget } = config.limits;
  const answering = await findDefaultModel(config, env);
  const { fallbackModels, fastModel } = config.agents.defaults;
  const models = [answering, ...fallbackModels, ...(fastModel === '' ? [] : [fastModel])];
  const unknown = models.filter(
    (model) => priceOf(model, config.models.prices, budget.currency) === undefined,
  );
  if (unknown.length === 0) return ok('prices', `known, in ${budget.currency}`);
  const text = `no price is known of ${unknown.join(', ')}`;
  const isLimited =
    budget.perPersonMoneyPerDay +
      budget.perChatMoneyPerDay +
      budget.perJobMoneyPerDay +
      budget.totalMoneyPerDay >
    0;
  if (!isLimited) return ok('prices', `${text}: counted in tokens only`);
  const assumed = assumedPrice(budget.unpriced, budget.currency);
  const done =
    assumed === undefined
      ? 'not asked, since a budget in money counts'
      : `charged ${assumed.input} and ${assumed.output} ${budget.currency} per million tokens, in and out`;
  return warn('prices', `${text}: ${done}`, 'Write it in models.prices, or set budgets in tokens.');
}
