// Checks whether the prices of the configured models are known.

import { type Finding, type Machine, ok, warn } from '../../cli/doctor/machine-checks.ts';
import type { Config } from '../../kernel/config/config.ts';
import { t } from '../../lib/texts.ts';
import { findDefaultModel } from '../../providers/credentials.ts';
import { assumedPrice, priceOf } from '../../providers/rules/model-names.ts';

export async function checkPrices({ env }: Machine, config: Config): Promise<Finding> {
  const { budget } = config.limits;
  const answering = await findDefaultModel(config, env);
  const { fallbackModels, fastModel } = config.agents.defaults;
  const models = [answering, ...fallbackModels, ...(fastModel === '' ? [] : [fastModel])];
  const unknown = models.filter(
    (model) => priceOf(model, config.models.prices, budget.currency) === undefined,
  );
  if (unknown.length === 0) return ok('prices', t`all model prices known, in ${budget.currency}`);
  const text = t`unknown price: ${unknown.join(', ')}`;
  const isLimited =
    budget.perPersonMoneyPerDay +
      budget.perChatMoneyPerDay +
      budget.perJobMoneyPerDay +
      budget.totalMoneyPerDay >
    0;
  if (!isLimited) return ok('prices', t`${text}; only tokens are counted`);
  const assumed = assumedPrice(budget.unpriced, budget.currency);
  const done =
    assumed === undefined
      ? t`not used, because a budget in money is set`
      : t`charged at ${assumed.input} (in) and ${assumed.output} (out) ${budget.currency} per million tokens`;
  return warn(
    'prices',
    `${text}; ${done}`,
    t`Set the price in models.prices, or set budgets in tokens.`,
  );
}
