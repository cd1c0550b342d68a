// The layers. `using` declarations are read like others, which the visitor of the parser does not know.

import { Visitor } from '@swc/core/Visitor.js';
import layers from './.dependency-cruiser.json' with { type: 'json' };

const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

export default layers;
