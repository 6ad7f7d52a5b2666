import SchemaBuilder, { type InputListRef, type InputRef, type ListRef, type OutputRef } from '@pothos/core';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import { scalars } from './scalars.ts';

/** What the fields of `Query` are resolved on: the write's position in a mutation's payload, nothing at the top of an operation. */
export interface Root {
  readonly after?: GlobalPosition;
}

// The types of rows are known at run time only: what a scalar is written from is unknown here, and checked by the scalar.
interface Scalar<Input> {
  Input: Input;
  Output: unknown;
}

interface Options {
  Context: OperationContext;
  Root: Root;
  DefaultFieldNullability: false;
  Scalars: {
    String: Scalar<string>;
    ID: Scalar<string>;
    Int: Scalar<number>;
    Float: Scalar<number>;
    Boolean: Scalar<boolean>;
    BigInt: Scalar<string>;
    Date: Scalar<string>;
    DateTime: Scalar<string>;
    Decimal: Scalar<string>;
    JSON: Scalar<unknown>;
    /** With its anchor, where somebody may come back with it, as text. */
    Position: { Input: PositionToken; Output: GlobalPosition | string };
    SafeInt: Scalar<number>;
    UUID: Scalar<string>;
  };
}

export type Types = PothosSchemaTypes.ExtendDefaultTypes<Options>;
export type Builder = PothosSchemaTypes.SchemaBuilder<Types>;
export type ScalarName = keyof Options['Scalars'];
export type AnyOutput = ScalarName | OutputRef | ListRef<Types, unknown>;
export type AnyInput = ScalarName | InputRef | InputListRef<Types, unknown>;

/** A builder that knows the scalars; the types are made by whoever declares them. */
export function createBuilder(): Builder {
  const builder = new SchemaBuilder<Options>({ defaultFieldNullability: false });
  for (const [name, scalar] of Object.entries(scalars)) builder.addScalarType(name as keyof typeof scalars, scalar); // its own keys
  return builder;
}
