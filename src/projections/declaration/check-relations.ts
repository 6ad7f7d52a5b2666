import { invalidDeclaration } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type Column, isContainer } from '../columns/column.ts';
import type { Projection } from '../projection/projection.ts';
import type { Relation } from '../projection/relations.ts';

/**
 * Checks that every relation fits every declared version of its target, because any of them may be the served one.
 *
 * @throws RefoldError `INVALID_DECLARATION` that says what to change.
 */
export function checkRelations(projections: readonly Projection[]): void {
  for (const projection of projections) {
    for (const [name, relation] of Object.entries(projection.relations)) {
      const targets = projections.filter((other) => other.name === relation.target);
      if (targets.length === 0)
        throw invalidDeclaration(
          projection.id,
          `relation '${name}' leads to '${relation.target}', which is not declared.${closest(
            relation.target,
            projections.map((other) => other.name),
          )}`,
        );
      for (const target of targets) checkRelation(projection, name, relation, target);
    }
  }
}

function checkRelation(projection: Projection, name: string, relation: Relation, target: Projection): void {
  const refuse = (problem: string) => invalidDeclaration(projection.id, `relation '${name}' ${problem}`);
  if (relation.kind === 'one') {
    const { from } = relation;
    const key = target.keyColumns;
    if (from.length !== key.length)
      throw refuse(
        `names ${from.length} of the ${key.length} key columns of ${target.id} (${key.join(', ')}). List one column for each, in this order.`,
      );
    for (const [index, column] of from.entries()) checkKinds(column, key[index] as string); // same length
    return;
  }
  const column = Object.hasOwn(target.columns, relation.to) ? target.columns[relation.to] : undefined;
  if (!column)
    throw refuse(
      `needs a column '${relation.to}' in ${target.id}, which has none.${closest(relation.to, Object.keys(target.columns))} Every version of ${target.name} must have it, because any of them may be served.`,
    );
  if (isContainer(column))
    throw refuse(`compares by '${relation.to}' of ${target.id}, which is ${column.type.kind}; name a scalar column.`);
  if (!column.flags.index)
    throw refuse(
      `would read the whole table for each row: ${target.id} has no index of '${relation.to}'. Declare it with .index().`,
    );
  checkKinds(relation.from, relation.to);

  function checkKinds(from: string, to: string): void {
    const [own, other] = [projection.columns[from] as Column, target.columns[to] as Column]; // checked before: both are declared
    if (own.type.kind !== other.type.kind)
      throw refuse(
        `compares '${from}' (${own.type.kind}) with '${to}' of ${target.id} (${other.type.kind}). Declare both with the same type.`,
      );
  }
}
