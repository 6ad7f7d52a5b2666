import { defineConfig } from '../../src/index.ts';
import { cartSummaryV1 } from './cart-summary.v1.ts';
import { cartSummaryV2 } from './cart-summary.v2.ts';
import { registerCustomer, updateCustomerProfile } from './customer.ts';
import { customerProfileV1 } from './customer-profile.v1.ts';
import {
  addProductItem,
  cancelShoppingCart,
  confirmShoppingCart,
  openShoppingCart,
  removeProductItem,
} from './shopping-cart.ts';

export default defineConfig({
  projections: [cartSummaryV1, cartSummaryV2, customerProfileV1],
  commands: [
    openShoppingCart,
    addProductItem,
    removeProductItem,
    confirmShoppingCart,
    cancelShoppingCart,
    registerCustomer,
    updateCustomerProfile,
  ],
});
